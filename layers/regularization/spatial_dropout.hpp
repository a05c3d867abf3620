#pragma once

#include <optional>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct SpatialDropoutOptions {
  /// "channels_first": axis 1 holds the channels; not for SpatialDropout1D.
  std::string data_format = "channels_last";
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// Dropout of whole channels of a sample (keras.layers.SpatialDropout1D, 2D, 3D; Tompson, 2014): of
/// (n, steps, c), (n, height, width, c) and so on. In training a channel is 0 with probability
/// `rate`, the others are scaled by 1/(1 - rate). The choices depend on the global index: the same
/// on every mesh. No communication; shape, layout and mask stay.
class SpatialDropoutLayer final : public Layer {
 public:
  SpatialDropoutLayer(int dimensions, double rate, const SpatialDropoutOptions& options);
  std::string class_name() const override;
  Json config() const override;
  /// Throws ShapeError for an input of another rank.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  int dimensions_;
  double rate_;
  bool channels_first_;
  std::optional<int64_t> seed_;
};

/// Each throws ConfigError unless 0 <= rate < 1, and for another data_format.
class SpatialDropout1D : public LayerHandle {
 public:
  explicit SpatialDropout1D(double rate, const SpatialDropoutOptions& options = {})
      : LayerHandle(std::make_shared<SpatialDropoutLayer>(1, rate, options)) {}
};

class SpatialDropout2D : public LayerHandle {
 public:
  explicit SpatialDropout2D(double rate, const SpatialDropoutOptions& options = {})
      : LayerHandle(std::make_shared<SpatialDropoutLayer>(2, rate, options)) {}
};

class SpatialDropout3D : public LayerHandle {
 public:
  explicit SpatialDropout3D(double rate, const SpatialDropoutOptions& options = {})
      : LayerHandle(std::make_shared<SpatialDropoutLayer>(3, rate, options)) {}
};

/// Of so many spatial dimensions, from Keras' configuration.
LayerHandle spatial_dropout_from_config(int dimensions, JsonObject& config);

}  // namespace tessera
