#pragma once

#include <tessera/framework/nn/config/array_option.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct RescalingOptions {
  ArrayOption offset = 0.0;
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// x · scale + offset in the compute dtype, also of whole numbers (keras.layers.Rescaling). Arrays
/// broadcast to the last axes of x. No communication; shape and layout stay.
class RescalingLayer final : public Layer {
 public:
  RescalingLayer(const ArrayOption& scale, const RescalingOptions& options);
  std::string class_name() const override { return "Rescaling"; }
  Json config() const override;
  /// Throws ShapeError for an input that the scale or offset does not broadcast to.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  ArrayOption scale_, offset_;
};

class Rescaling : public LayerHandle {
 public:
  /// Throws ConfigError for no scale or offset.
  explicit Rescaling(const ArrayOption& scale, const RescalingOptions& options = {})
      : LayerHandle(std::make_shared<RescalingLayer>(scale, options)) {}
  static Rescaling from_config(JsonObject& config);
};

}  // namespace tessera
