#pragma once

#include <memory>
#include <optional>

#include <tessera/layers/reshaping/spatial_layer.hpp>

namespace tessera {

struct PoolingOptions {
  std::optional<AxisValues> strides = std::nullopt;  ///< absent: the pool's size
  std::string padding = "valid";                     ///< "valid" or "same"
  std::string data_format = "";                      ///< "channels_last" or "channels_first"
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// The greatest or the mean number of each window, of each channel (keras.layers.MaxPooling1D,
/// MaxPooling2D, AveragePooling1D, AveragePooling2D); padding never counts. Shape: (batch,
/// spatial…, channels) -> (batch, spatial'…, channels). Layouts pass on; a sharded spatial axis
/// fetches the rows that its windows read beyond a shard.
class PoolingLayer final : public SpatialLayer {
 public:
  enum class Kind { max, average };
  PoolingLayer(Kind kind, int64_t spatial, const AxisValues& pool_size,
               const PoolingOptions& options);
  Json config() const override;

 protected:
  Shape image_shape(const Shape& x) const override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  std::vector<WindowAxis> axes(const Shape& x) const;

  Kind kind_;
  std::string padding_;
  std::vector<int64_t> pool_size_, strides_;
};

class MaxPooling1D : public LayerHandle {
 public:
  /// Throws ConfigError for sizes below 1 or an unknown padding.
  explicit MaxPooling1D(const AxisValues& pool_size = 2, const PoolingOptions& options = {})
      : LayerHandle(std::make_shared<PoolingLayer>(PoolingLayer::Kind::max, 1, pool_size,
                                                   options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class MaxPooling2D : public LayerHandle {
 public:
  explicit MaxPooling2D(const AxisValues& pool_size = 2, const PoolingOptions& options = {})
      : LayerHandle(std::make_shared<PoolingLayer>(PoolingLayer::Kind::max, 2, pool_size,
                                                   options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class AveragePooling1D : public LayerHandle {
 public:
  explicit AveragePooling1D(const AxisValues& pool_size, const PoolingOptions& options = {})
      : LayerHandle(std::make_shared<PoolingLayer>(PoolingLayer::Kind::average, 1, pool_size,
                                                   options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class AveragePooling2D : public LayerHandle {
 public:
  explicit AveragePooling2D(const AxisValues& pool_size, const PoolingOptions& options = {})
      : LayerHandle(std::make_shared<PoolingLayer>(PoolingLayer::Kind::average, 2, pool_size,
                                                   options)) {}
  static LayerHandle from_config(JsonObject& config);
};

}  // namespace tessera
