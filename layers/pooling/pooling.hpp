#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/axis_values.hpp>

namespace tessera {

/// Options of MaxPooling1D, MaxPooling2D, MaxPooling3D, AveragePooling1D, AveragePooling2D and
/// AveragePooling3D.
struct PoolingOptions {
  std::optional<AxisValues> strides = std::nullopt;  ///< stride (default: pool_size)
  std::string padding = "valid";                     ///< "valid" or "same"
  std::string data_format = "";  ///< "channels_last" (default) or "channels_first"
  std::string name = "";         ///< first component of the weights' paths
  std::string dtype = "";        ///< dtype policy (default: the global policy)
  bool trainable = true;         ///< whether training changes the weights
};

/// The maximum of each channel in each window of steps, ignoring padding
/// (keras.layers.MaxPooling1D).
///
/// Shape: (batch, steps, channels) -> (batch, steps', channels), as data_format orders the axes.
/// Communication: see MaxPooling2D, here with the axis of steps.
class MaxPooling1D : public LayerHandle {
 public:
  /// Windows of `pool_size` steps. Throws ConfigError for sizes below 1 or an unknown padding.
  explicit MaxPooling1D(const AxisValues& pool_size = 2, const PoolingOptions& options = {});
};

/// The maximum of each channel in each window of an image, ignoring padding
/// (keras.layers.MaxPooling2D).
///
/// Shape: (batch, height, width, channels) -> (batch, height', width', channels), as data_format
/// orders the axes. An extent n becomes ceil(n / stride) with padding "same", and the number of
/// windows that fit with "valid".
/// Communication: none for a sharded batch or sharded channels; a sharded height or width fetches
/// halo rows from its neighbours.
///
///     MaxPooling2D(3, {.strides = 2, .padding = "same"})
class MaxPooling2D : public LayerHandle {
 public:
  /// Windows of `pool_size`, {3, 2} or 3 for both axes. Throws ConfigError for sizes below 1 or an
  /// unknown padding.
  explicit MaxPooling2D(const AxisValues& pool_size = 2, const PoolingOptions& options = {});
};

/// The maximum of each channel in each window of a volume, ignoring padding
/// (keras.layers.MaxPooling3D).
///
/// Shape: (batch, depth, height, width, channels) -> (batch, depth', height', width', channels), as
/// data_format orders the axes; extents as for MaxPooling2D.
/// Communication: see MaxPooling2D, here with three axes that may be sharded.
///
///     MaxPooling3D({1, 2, 2})   // halves height and width
class MaxPooling3D : public LayerHandle {
 public:
  /// Windows of `pool_size`, one integer per axis or one for all. Throws ConfigError for sizes
  /// below 1 or an unknown padding.
  explicit MaxPooling3D(const AxisValues& pool_size = 2, const PoolingOptions& options = {});
};

/// The mean of each channel in each window of steps, ignoring padding
/// (keras.layers.AveragePooling1D).
///
/// Shape: (batch, steps, channels) -> (batch, steps', channels), as data_format orders the axes.
/// Communication: see MaxPooling2D, here with the axis of steps.
class AveragePooling1D : public LayerHandle {
 public:
  /// Windows of `pool_size` steps. Throws ConfigError for sizes below 1 or an unknown padding.
  explicit AveragePooling1D(const AxisValues& pool_size, const PoolingOptions& options = {});
};

/// The mean of each channel in each window of an image, ignoring padding
/// (keras.layers.AveragePooling2D).
///
/// Shape: (batch, height, width, channels) -> (batch, height', width', channels), as data_format
/// orders the axes; extents as for MaxPooling2D.
/// Communication: see MaxPooling2D.
class AveragePooling2D : public LayerHandle {
 public:
  /// Windows of `pool_size`, {3, 2} or 3 for both axes. Throws ConfigError for sizes below 1 or an
  /// unknown padding.
  explicit AveragePooling2D(const AxisValues& pool_size, const PoolingOptions& options = {});
};

/// The mean of each channel in each window of a volume, ignoring padding
/// (keras.layers.AveragePooling3D).
///
/// Shape: (batch, depth, height, width, channels) -> (batch, depth', height', width', channels), as
/// data_format orders the axes; extents as for MaxPooling2D.
/// Communication: see MaxPooling3D.
class AveragePooling3D : public LayerHandle {
 public:
  /// Windows of `pool_size`, one integer per axis or one for all. Throws ConfigError for sizes
  /// below 1 or an unknown padding.
  explicit AveragePooling3D(const AxisValues& pool_size, const PoolingOptions& options = {});
};

/// Keras' other names.
using MaxPool1D = MaxPooling1D;
using MaxPool2D = MaxPooling2D;
using MaxPool3D = MaxPooling3D;
using AvgPool1D = AveragePooling1D;
using AvgPool2D = AveragePooling2D;
using AvgPool3D = AveragePooling3D;

}  // namespace tessera
