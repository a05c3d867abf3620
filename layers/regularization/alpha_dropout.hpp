#pragma once

#include <optional>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/regularization/noise.hpp>

namespace tessera {

struct AlphaDropoutOptions {
  /// Of the random choices, which broadcast to x, as of Dropout.
  Shape noise_shape = {};
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// In training, elements become -1.7581, what selu tends to, with probability `rate`, and all are
/// then scaled and moved so that mean 0 and variance 1 stay (keras.layers.AlphaDropout; Klambauer,
/// 2017). Which ones depends on the global index: the same on every mesh. No communication; shape,
/// layout and mask stay.
class AlphaDropoutLayer final : public Layer {
 public:
  AlphaDropoutLayer(double rate, const AlphaDropoutOptions& options);
  std::string class_name() const override { return "AlphaDropout"; }
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

class AlphaDropout : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= rate < 1 and the noise shape holds -1 and extents from 1 on.
  explicit AlphaDropout(double rate, const AlphaDropoutOptions& options = {})
      : LayerHandle(std::make_shared<AlphaDropoutLayer>(rate, options)) {}
  static AlphaDropout from_config(JsonObject& config);
};

}  // namespace tessera
