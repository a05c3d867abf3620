#pragma once

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct LeakyReLUOptions {
  double negative_slope = 0.3;
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// x for x > 0, else negative_slope · x (keras.layers.LeakyReLU). Shape, layout and mask stay; no
/// communication.
class LeakyReLULayer final : public Layer {
 public:
  explicit LeakyReLULayer(const LeakyReLUOptions& options);
  std::string class_name() const override { return "LeakyReLU"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  double negative_slope_;
};

class LeakyReLU : public LayerHandle {
 public:
  /// Throws ConfigError for a negative slope.
  explicit LeakyReLU(const LeakyReLUOptions& options = {})
      : LayerHandle(std::make_shared<LeakyReLULayer>(options)) {}
  static LeakyReLU from_config(JsonObject& config);
};

}  // namespace tessera
