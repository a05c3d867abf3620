#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The axes that Dot sums over: one for both inputs, or one for each.
class DotAxes {
 public:
  DotAxes(int64_t axis) : axes_{axis, axis} {}                      // NOLINT: reads as data
  DotAxes(int64_t first, int64_t second) : axes_{first, second} {}  // NOLINT
  int64_t operator[](size_t input) const { return axes_[input]; }

 private:
  int64_t axes_[2];
};

/// The options of Dot.
struct DotOptions {
  bool normalize = false;  ///< whether to L2-normalize along the axes first (cosines)
  std::string name = "";   ///< first component of the weights' paths
  std::string dtype = "";  ///< dtype policy (default: the global policy)
  bool trainable = true;   ///< whether training changes the weights
};

/// The dot product of two tensors over one axis of each, row by row (keras.layers.Dot).
///
/// Shape: (batch, …) and (batch, …) -> (batch, …): the first input's other axes, then the second's;
/// (batch, 1) for two matrices. Throws ShapeError unless there are two inputs of equal batches
/// whose axes have equal extents.
/// Communication: none. A mesh dimension that shards the summed axis of both inputs leaves a
/// partial sum; with `normalize` it costs one all-reduce of each input's squared norms. Other axes
/// keep their sharding.
///
///     Dot({2, 1})({queries, keys})   // (n, a, b) and (n, b, c) -> (n, a, c)
class Dot : public LayerHandle {
 public:
  /// `axes`: the summed axis of both inputs, 2, or of each, {2, 1}; not the batch. -1 is the last
  /// axis.
  explicit Dot(DotAxes axes, const DotOptions& options = {});
};

}  // namespace tessera
