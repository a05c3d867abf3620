#pragma once

#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Options of GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D, GlobalAveragePooling1D,
/// GlobalAveragePooling2D and GlobalAveragePooling3D.
struct GlobalPoolingOptions {
  std::string data_format = "";  ///< "channels_last" (default) or "channels_first"
  bool keepdims = false;         ///< whether to keep the spatial axes, with extent 1
  std::string name = "";         ///< first component of the weights' paths
  std::string dtype = "";        ///< dtype policy (default: the global policy)
  bool trainable = true;         ///< whether training changes the weights
};

/// The maximum of each channel over all steps (keras.layers.GlobalMaxPooling1D).
///
/// Shape: (batch, steps, channels) -> (batch, channels).
/// Communication: none for a sharded batch or sharded channels; sharded steps cost one all-reduce
/// of the output.
class GlobalMaxPooling1D : public LayerHandle {
 public:
  /// Throws ConfigError for an unknown data_format.
  explicit GlobalMaxPooling1D(const GlobalPoolingOptions& options = {});
};

/// The maximum of each channel over an image (keras.layers.GlobalMaxPooling2D).
///
/// Shape: (batch, height, width, channels) -> (batch, channels).
/// Communication: none for a sharded batch or sharded channels; a sharded height or width costs one
/// all-reduce of the output.
class GlobalMaxPooling2D : public LayerHandle {
 public:
  /// Throws ConfigError for an unknown data_format.
  explicit GlobalMaxPooling2D(const GlobalPoolingOptions& options = {});
};

/// The maximum of each channel over a volume (keras.layers.GlobalMaxPooling3D).
///
/// Shape: (batch, depth, height, width, channels) -> (batch, channels).
/// Communication: see GlobalMaxPooling2D, here with three axes that may be sharded.
class GlobalMaxPooling3D : public LayerHandle {
 public:
  /// Throws ConfigError for an unknown data_format.
  explicit GlobalMaxPooling3D(const GlobalPoolingOptions& options = {});
};

/// The mean of each channel over all steps that are not masked
/// (keras.layers.GlobalAveragePooling1D).
///
/// Shape: (batch, steps, channels) -> (batch, channels).
/// Communication: none for a sharded batch or sharded channels; sharded steps cost one all-reduce
/// of the output.
class GlobalAveragePooling1D : public LayerHandle {
 public:
  /// Throws ConfigError for an unknown data_format.
  explicit GlobalAveragePooling1D(const GlobalPoolingOptions& options = {});
};

/// The mean of each channel over an image (keras.layers.GlobalAveragePooling2D).
///
/// Shape: (batch, height, width, channels) -> (batch, channels).
/// Communication: none for a sharded batch or sharded channels; a sharded height or width costs one
/// all-reduce of the output.
class GlobalAveragePooling2D : public LayerHandle {
 public:
  /// Throws ConfigError for an unknown data_format.
  explicit GlobalAveragePooling2D(const GlobalPoolingOptions& options = {});
};

/// The mean of each channel over a volume (keras.layers.GlobalAveragePooling3D).
///
/// Shape: (batch, depth, height, width, channels) -> (batch, channels).
/// Communication: see GlobalAveragePooling2D, here with three axes that may be sharded.
class GlobalAveragePooling3D : public LayerHandle {
 public:
  /// Throws ConfigError for an unknown data_format.
  explicit GlobalAveragePooling3D(const GlobalPoolingOptions& options = {});
};

/// Keras' other names.
using GlobalMaxPool1D = GlobalMaxPooling1D;
using GlobalMaxPool2D = GlobalMaxPooling2D;
using GlobalMaxPool3D = GlobalMaxPooling3D;
using GlobalAvgPool1D = GlobalAveragePooling1D;
using GlobalAvgPool2D = GlobalAveragePooling2D;
using GlobalAvgPool3D = GlobalAveragePooling3D;

}  // namespace tessera
