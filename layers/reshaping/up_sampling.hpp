#pragma once

#include <memory>

#include <tessera/layers/reshaping/spatial_layer.hpp>

namespace tessera {

struct UpSamplingOptions {
  std::string data_format = "";           ///< "channels_last" or "channels_first"
  std::string interpolation = "nearest";  ///< bilinear, bicubic, lanczos3, lanczos5 with 2 axes
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// An image made larger by whole factors, its cells repeated or interpolated
/// (keras.layers.UpSampling1D, UpSampling2D). Shape: (batch, spatial…, channels) -> (batch,
/// spatial · size…, channels). A sharded spatial axis fetches the cells that its own need.
class UpSamplingLayer final : public SpatialLayer {
 public:
  UpSamplingLayer(int64_t spatial, const AxisValues& size, const UpSamplingOptions& options);
  Json config() const override;

 protected:
  Shape image_shape(const Shape& x) const override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  std::vector<int64_t> size_;
  std::string interpolation_;
};

class UpSampling1D : public LayerHandle {
 public:
  /// Throws ConfigError for a size below 1 or another interpolation than "nearest".
  explicit UpSampling1D(const AxisValues& size = 2, const UpSamplingOptions& options = {})
      : LayerHandle(std::make_shared<UpSamplingLayer>(1, size, options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class UpSampling2D : public LayerHandle {
 public:
  /// Throws ConfigError for a size below 1 or an unknown interpolation.
  explicit UpSampling2D(const AxisValues& size = 2, const UpSamplingOptions& options = {})
      : LayerHandle(std::make_shared<UpSamplingLayer>(2, size, options)) {}
  static LayerHandle from_config(JsonObject& config);
};

}  // namespace tessera
