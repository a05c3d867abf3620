#pragma once

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct ELUOptions {
  double alpha = 1.0;
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// x for x > 0, else alpha (exp(x) - 1) (keras.layers.ELU). Shape, layout and mask stay; no
/// communication.
class ELULayer final : public Layer {
 public:
  explicit ELULayer(const ELUOptions& options);
  std::string class_name() const override { return "ELU"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  double alpha_;
};

class ELU : public LayerHandle {
 public:
  explicit ELU(const ELUOptions& options = {})
      : LayerHandle(std::make_shared<ELULayer>(options)) {}
  static ELU from_config(JsonObject& config);
};

}  // namespace tessera
