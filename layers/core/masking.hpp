#pragma once

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct MaskingOptions {
  double mask_value = 0;
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// Sets the steps whose features all are `mask_value` to 0 and leaves them out of the mask that
/// goes on with the output (keras.layers.Masking). Shape: (batch, …, features), which stays; the
/// mask has all axes but the last. Layouts: x keeps its own; features that are cut cost an
/// all-reduce of the mask.
class MaskingLayer final : public Layer {
 public:
  explicit MaskingLayer(const MaskingOptions& options)
      : Layer({options.name, options.dtype, options.trainable}),
        mask_value_(options.mask_value) {}
  std::string class_name() const override { return "Masking"; }
  Json config() const override;
  /// Throws ShapeError for an input without features.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  double mask_value_;
};

class Masking : public LayerHandle {
 public:
  explicit Masking(const MaskingOptions& options = {})
      : LayerHandle(std::make_shared<MaskingLayer>(options)) {}
  static Masking from_config(JsonObject& config);
};

}  // namespace tessera
