#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Counts before and after each spatial axis: one for all, one per axis, or a pair per axis (Keras'
/// int, (h, w) or ((top, bottom), (left, right)), and the same with depth first). For a single
/// axis, two numbers mean before and after.
struct AxisPads {
  using Pair = std::pair<int64_t, int64_t>;
  // No std::initializer_list constructor: g++ would match {.any_name = 2} to it.
  AxisPads(int64_t all) : one{all} {}  // NOLINT: reads as data
  AxisPads(int64_t first, int64_t second) : one{first, second} {}
  AxisPads(int64_t first, int64_t second, int64_t third) : one{first, second, third} {}
  AxisPads(std::vector<Pair> each) : two(std::move(each)) {}  // NOLINT
  std::vector<int64_t> one;
  std::vector<Pair> two;
};

/// Options of ZeroPadding1D, ZeroPadding2D, ZeroPadding3D, Cropping1D, Cropping2D and Cropping3D.
struct SpatialSizeOptions {
  std::string data_format = "";  ///< "channels_last" (default) or "channels_first"
  std::string name = "";         ///< first component of the weights' paths
  std::string dtype = "";        ///< dtype policy (default: the global policy)
  bool trainable = true;         ///< whether training changes the weights
};

/// Pads a sequence with zeros before and after its steps (keras.layers.ZeroPadding1D).
///
/// Shape: (batch, steps, channels) -> (batch, before + steps + after, channels), as data_format
/// orders the axes.
/// Communication: none for a sharded batch or sharded channels; sharded steps fetch from their
/// neighbours what each new shard lacks.
class ZeroPadding1D : public LayerHandle {
 public:
  /// `padding` zeros at both ends, or {before, after}. Throws ConfigError for negative counts.
  explicit ZeroPadding1D(const AxisPads& padding = 1, const SpatialSizeOptions& options = {});
};

/// Pads an image with zeros (keras.layers.ZeroPadding2D).
///
/// Shape: (batch, height, width, channels) -> (batch, top + height + bottom,
/// left + width + right, channels), as data_format orders the axes.
/// Communication: none for a sharded batch or sharded channels; a sharded height or width fetches
/// from its neighbours what each new shard lacks.
///
///     ZeroPadding2D({{1, 0}, {2, 2}})   // a row above, two columns on either side
class ZeroPadding2D : public LayerHandle {
 public:
  /// `padding` zeros on every side, or {vertical, horizontal}. Throws ConfigError for negative
  /// counts.
  explicit ZeroPadding2D(const AxisPads& padding = 1, const SpatialSizeOptions& options = {});
  /// {{top, bottom}, {left, right}} zeros. Throws ConfigError for negative counts.
  explicit ZeroPadding2D(std::initializer_list<AxisPads::Pair> padding,
                         const SpatialSizeOptions& options = {});
};

/// Pads a volume with zeros (keras.layers.ZeroPadding3D).
///
/// Shape: (batch, depth, height, width, channels) -> (batch, depth + before + after,
/// height + top + bottom, width + left + right, channels), as data_format orders the axes.
/// Communication: see ZeroPadding2D, here with three axes that may be sharded.
class ZeroPadding3D : public LayerHandle {
 public:
  /// `padding` zeros on every side, or one integer per axis. Throws ConfigError for negative
  /// counts.
  explicit ZeroPadding3D(const AxisPads& padding = 1, const SpatialSizeOptions& options = {});
  /// {{before, after}, {top, bottom}, {left, right}} zeros. Throws ConfigError for negative
  /// counts.
  explicit ZeroPadding3D(std::initializer_list<AxisPads::Pair> padding,
                         const SpatialSizeOptions& options = {});
};

/// Crops the first and last steps of a sequence (keras.layers.Cropping1D).
///
/// Shape: (batch, steps, channels) -> (batch, steps - before - after, channels), as data_format
/// orders the axes.
/// Communication: none for a sharded batch or sharded channels; sharded steps fetch from their
/// neighbours what each new shard lacks.
class Cropping1D : public LayerHandle {
 public:
  /// `cropping` steps at both ends, or {before, after}. Throws ConfigError for negative counts.
  explicit Cropping1D(const AxisPads& cropping = 1, const SpatialSizeOptions& options = {});
};

/// Crops the border of an image (keras.layers.Cropping2D).
///
/// Shape: (batch, height, width, channels) -> (batch, height - top - bottom,
/// width - left - right, channels), as data_format orders the axes.
/// Communication: none for a sharded batch or sharded channels; a sharded height or width fetches
/// from its neighbours what each new shard lacks.
class Cropping2D : public LayerHandle {
 public:
  /// `cropping` rows and columns on every side, or {vertical, horizontal}. Throws ConfigError for
  /// negative counts.
  explicit Cropping2D(const AxisPads& cropping = 0, const SpatialSizeOptions& options = {});
  /// {{top, bottom}, {left, right}} rows and columns. Throws ConfigError for negative counts.
  explicit Cropping2D(std::initializer_list<AxisPads::Pair> cropping,
                      const SpatialSizeOptions& options = {});
};

/// Crops the border of a volume (keras.layers.Cropping3D).
///
/// Shape: (batch, depth, height, width, channels) -> (batch, depth - before - after,
/// height - top - bottom, width - left - right, channels), as data_format orders the axes.
/// Communication: see Cropping2D, here with three axes that may be sharded.
class Cropping3D : public LayerHandle {
 public:
  /// `cropping` elements on every side, or one integer per axis. Throws ConfigError for negative
  /// counts.
  explicit Cropping3D(const AxisPads& cropping = 1, const SpatialSizeOptions& options = {});
  /// {{before, after}, {top, bottom}, {left, right}} elements. Throws ConfigError for negative
  /// counts.
  explicit Cropping3D(std::initializer_list<AxisPads::Pair> cropping,
                      const SpatialSizeOptions& options = {});
};

}  // namespace tessera
