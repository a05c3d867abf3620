#pragma once

#include <memory>

#include <tessera/layers/reshaping/spatial_layer.hpp>

namespace tessera {

struct GlobalPoolingOptions {
  std::string data_format = "";  ///< "channels_last" or "channels_first"
  bool keepdims = false;         ///< spatial axes stay, with extent 1
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// The greatest or the mean number of each channel over all spatial axes
/// (keras.layers.GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalAveragePooling1D,
/// GlobalAveragePooling2D). Shape: (batch, spatial…, channels) -> (batch, channels). The mean over
/// steps leaves out those that the input's mask does. Layouts: spatial axes sharded cost one
/// all-reduce of the output.
class GlobalPoolingLayer final : public SpatialLayer {
 public:
  enum class Kind { max, average };
  GlobalPoolingLayer(Kind kind, int64_t spatial, const GlobalPoolingOptions& options);
  Json config() const override;
  bool supports_masking() const override { return kind_ == Kind::average && spatial() == 1; }

 protected:
  Shape image_shape(const Shape& x) const override;
  DTensor transform(const DTensor& x, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs&, size_t) override { return {}; }

 private:
  Kind kind_;
  bool keepdims_;
};

class GlobalMaxPooling1D : public LayerHandle {
 public:
  /// Throws ConfigError for an unknown data_format.
  explicit GlobalMaxPooling1D(const GlobalPoolingOptions& options = {})
      : LayerHandle(std::make_shared<GlobalPoolingLayer>(GlobalPoolingLayer::Kind::max, 1,
                                                         options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class GlobalMaxPooling2D : public LayerHandle {
 public:
  explicit GlobalMaxPooling2D(const GlobalPoolingOptions& options = {})
      : LayerHandle(std::make_shared<GlobalPoolingLayer>(GlobalPoolingLayer::Kind::max, 2,
                                                         options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class GlobalAveragePooling1D : public LayerHandle {
 public:
  explicit GlobalAveragePooling1D(const GlobalPoolingOptions& options = {})
      : LayerHandle(std::make_shared<GlobalPoolingLayer>(GlobalPoolingLayer::Kind::average, 1,
                                                         options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class GlobalAveragePooling2D : public LayerHandle {
 public:
  explicit GlobalAveragePooling2D(const GlobalPoolingOptions& options = {})
      : LayerHandle(std::make_shared<GlobalPoolingLayer>(GlobalPoolingLayer::Kind::average, 2,
                                                         options)) {}
  static LayerHandle from_config(JsonObject& config);
};

}  // namespace tessera
