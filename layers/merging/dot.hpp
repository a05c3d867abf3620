#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The axis that Dot sums over: one of both inputs, or one of each.
class DotAxes {
 public:
  DotAxes(int64_t axis) : of_{axis, axis} {}                      // NOLINT: reads as data
  DotAxes(int64_t first, int64_t second) : of_{first, second} {}  // NOLINT
  int64_t operator[](size_t input) const { return of_[input]; }

 private:
  int64_t of_[2];
};

/// The options of Dot.
struct DotOptions {
  bool normalize = false;  ///< brings the vectors along the axes to length 1 first: cosines
  std::string name = "";   ///< first part of the weights' paths
  std::string dtype = "";  ///< policy; the default one if empty
  bool trainable = true;   ///< whether training changes the weights
};

/// Products of two tensors summed over an axis of each, row by row (keras.layers.Dot).
///
/// Shape: (batch, …) and (batch, …) -> (batch, …), the first's other axes, then the second's;
/// (batch, 1) of two matrices. Throws ShapeError unless there are two inputs of equal batches whose
/// axes have equal extents.
/// Communication: none; a mesh dimension that cuts the summed axis of both leaves a sum pending,
/// and costs one all-reduce of the squared norms of each with `normalize`. Other axes keep their
/// sharding.
///
///     Dot({2, 1})({queries, keys})   // (n, a, b) and (n, b, c) -> (n, a, c)
class Dot : public LayerHandle {
 public:
  /// `axes`: the summed one of both inputs, 2, or of each, {2, 1}, after the batch; -1 is the last.
  explicit Dot(DotAxes axes, const DotOptions& options = {});
};

}  // namespace tessera
