#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Counts before and after each spatial axis: one for all, one for each axis, or two for each
/// (Keras' int, (h, w) or ((top, bottom), (left, right))). On one axis two numbers are before and
/// after.
struct AxisPads {
  using Pair = std::pair<int64_t, int64_t>;
  // Not of a std::initializer_list: g++ takes {.any_name = 2} for one.
  AxisPads(int64_t all) : one{all} {}  // NOLINT: reads as data
  AxisPads(int64_t first, int64_t second) : one{first, second} {}
  AxisPads(std::vector<Pair> each) : two(std::move(each)) {}  // NOLINT
  std::vector<int64_t> one;
  std::vector<Pair> two;
};

/// Options of ZeroPadding1D, ZeroPadding2D, Cropping1D and Cropping2D.
struct SpatialSizeOptions {
  std::string data_format = "";  ///< "channels_last", as if empty, or "channels_first"
  std::string name = "";         ///< first part of the weights' paths
  std::string dtype = "";        ///< policy; the default one if empty
  bool trainable = true;         ///< whether training changes the weights
};

/// A sequence with zeros before and after its steps (keras.layers.ZeroPadding1D).
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

/// An image with zeros around it (keras.layers.ZeroPadding2D).
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

/// A sequence without its first and last steps (keras.layers.Cropping1D).
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

/// An image without its border (keras.layers.Cropping2D).
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

}  // namespace tessera
