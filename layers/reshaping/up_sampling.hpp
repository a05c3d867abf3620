#pragma once

#include <string>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/axis_values.hpp>

namespace tessera {

/// Options of UpSampling1D, UpSampling2D and UpSampling3D.
struct UpSamplingOptions {
  std::string data_format = "";           ///< "channels_last" (default) or "channels_first"
  std::string interpolation = "nearest";  ///< 2D also: bilinear, bicubic, lanczos3, lanczos5
  std::string name = "";                  ///< first component of the weights' paths
  std::string dtype = "";                 ///< dtype policy (default: the global policy)
  bool trainable = true;                  ///< whether training changes the weights
};

/// Repeats each step of a sequence `size` times (keras.layers.UpSampling1D).
///
/// Shape: (batch, steps, channels) -> (batch, steps · size, channels), as data_format orders the
/// axes.
/// Communication: none for a sharded batch or sharded channels; sharded steps fetch from their
/// neighbours what the new shards lack.
class UpSampling1D : public LayerHandle {
 public:
  /// Throws ConfigError for a size below 1 or another interpolation than "nearest".
  explicit UpSampling1D(const AxisValues& size = 2, const UpSamplingOptions& options = {});
};

/// Enlarges an image by integer factors, repeating or interpolating pixels
/// (keras.layers.UpSampling2D).
///
/// Shape: (batch, height, width, channels) -> (batch, height · size, width · size, channels), as
/// data_format orders the axes.
/// Communication: none for a sharded batch or sharded channels; a sharded height or width fetches
/// from its neighbours the pixels that its own need.
///
///     UpSampling2D({2, 3}, {.interpolation = "bilinear"})
class UpSampling2D : public LayerHandle {
 public:
  /// Factors `size`, {2, 3} or 2 for both axes. Throws ConfigError for a size below 1 or an unknown
  /// interpolation.
  explicit UpSampling2D(const AxisValues& size = 2, const UpSamplingOptions& options = {});
};

/// Enlarges a volume by integer factors, repeating its elements (keras.layers.UpSampling3D).
///
/// Shape: (batch, depth, height, width, channels) -> (batch, depth · size, height · size,
/// width · size, channels), as data_format orders the axes.
/// Communication: see UpSampling1D, here with three axes that may be sharded.
class UpSampling3D : public LayerHandle {
 public:
  /// Factors `size`, one integer per axis or one for all. Throws ConfigError for a size below 1 or
  /// another interpolation than "nearest".
  explicit UpSampling3D(const AxisValues& size = 2, const UpSamplingOptions& options = {});
};

}  // namespace tessera
