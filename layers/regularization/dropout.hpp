#pragma once

#include <optional>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/regularization/noise.hpp>

namespace tessera {

struct DropoutOptions {
  /// Of the random choices, which broadcast to x: {-1, 1, -1} drops whole columns of every matrix.
  /// -1 is x's extent (Keras' None); {}: x's shape.
  Shape noise_shape = {};
  std::optional<int64_t> seed = std::nullopt;  ///< instead of the model's stream
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// In training, elements are 0 with probability `rate`, the others scaled by 1/(1 − rate)
/// (keras.layers.Dropout). Which ones depends on the global index: the same on every mesh. No
/// communication; shape and layout stay.
class DropoutLayer final : public Layer {
 public:
  DropoutLayer(double rate, const DropoutOptions& options);
  std::string class_name() const override { return "Dropout"; }
  Json config() const override;
  /// Throws ShapeError for an input that the noise shape does not broadcast to.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  double rate_;
  NoiseShape noise_shape_;
  std::optional<int64_t> seed_;
};

class Dropout : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= rate < 1 and the noise shape holds -1 and extents from 1 on.
  explicit Dropout(double rate, const DropoutOptions& options = {})
      : LayerHandle(std::make_shared<DropoutLayer>(rate, options)) {}
  static Dropout from_config(JsonObject& config);
};

}  // namespace tessera
