#pragma once

#include <optional>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct ReLUOptions {
  std::optional<double> max_value = std::nullopt;  ///< the largest output; absent: none
  double negative_slope = 0;                       ///< of what lies below `threshold`
  double threshold = 0;
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// x from `threshold` on, at most `max_value`; below, negative_slope (x - threshold)
/// (keras.layers.ReLU). Shape, layout and mask stay; no communication.
class ReLULayer final : public Layer {
 public:
  explicit ReLULayer(const ReLUOptions& options);
  std::string class_name() const override { return "ReLU"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  std::optional<double> max_value_;
  double negative_slope_;
  double threshold_;
};

class ReLU : public LayerHandle {
 public:
  /// Throws ConfigError for a negative option.
  explicit ReLU(const ReLUOptions& options = {})
      : LayerHandle(std::make_shared<ReLULayer>(options)) {}
  static ReLU from_config(JsonObject& config);
};

}  // namespace tessera
