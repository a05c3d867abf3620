#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The sum of any number of inputs (keras.layers.Add).
///
/// Shape: (batch, …) each, broadcast after the batch as in NumPy -> (batch, …). A step is masked if
/// all inputs mask it.
/// Communication: none for inputs in one layout; partial sums stay partial.
class Add : public LayerHandle {
 public:
  explicit Add(const LayerOptions& options = {});
};

/// The first input minus the second (keras.layers.Subtract).
///
/// Shape: (batch, …) each, broadcast after the batch as in NumPy -> (batch, …). A step is masked if
/// both inputs mask it.
/// Communication: none for inputs in one layout; partial sums stay partial.
class Subtract : public LayerHandle {
 public:
  explicit Subtract(const LayerOptions& options = {});
};

/// The product of any number of inputs, ignoring masked elements (keras.layers.Multiply).
///
/// Shape: (batch, …) each, broadcast after the batch as in NumPy -> (batch, …). A step is masked if
/// all inputs mask it.
/// Communication: none for inputs in one layout.
class Multiply : public LayerHandle {
 public:
  explicit Multiply(const LayerOptions& options = {});
};

/// The mean of any number of inputs, in the compute dtype (keras.layers.Average).
///
/// Shape: (batch, …) each, broadcast after the batch as in NumPy -> (batch, …). A step is masked if
/// all inputs mask it.
/// Communication: none for inputs in one layout.
class Average : public LayerHandle {
 public:
  explicit Average(const LayerOptions& options = {});
};

/// The maximum of any number of inputs, ignoring masked elements (keras.layers.Maximum).
///
/// Shape: (batch, …) each, broadcast after the batch as in NumPy -> (batch, …). A step is masked if
/// all inputs mask it.
/// Communication: none for inputs in one layout.
class Maximum : public LayerHandle {
 public:
  explicit Maximum(const LayerOptions& options = {});
};

/// The minimum of any number of inputs, ignoring masked elements (keras.layers.Minimum).
///
/// Shape: (batch, …) each, broadcast after the batch as in NumPy -> (batch, …). A step is masked if
/// all inputs mask it.
/// Communication: none for inputs in one layout.
class Minimum : public LayerHandle {
 public:
  explicit Minimum(const LayerOptions& options = {});
};

/// The options of Concatenate.
struct ConcatenateOptions {
  int64_t axis = -1;       ///< axis to concatenate along; -1 is the last
  std::string name = "";   ///< first component of the weights' paths
  std::string dtype = "";  ///< dtype policy (default: the global policy)
  bool trainable = true;   ///< whether training changes the weights
};

/// Concatenates tensors along an axis (keras.layers.Concatenate). If the inputs' dtypes differ,
/// integers are cast to the compute dtype. Masks are combined likewise; an input without one counts
/// as unmasked.
///
/// Shape: (batch, …) each, equal except along `axis` -> (batch, …), with the sum of the extents
/// along `axis`. Throws ShapeError for other inputs or none.
/// Communication: none if `axis` is replicated; if it is sharded, the new shards fetch what they
/// lack. The other axes keep their sharding.
///
///     Concatenate({.axis = 1})({left, right})
class Concatenate : public LayerHandle {
 public:
  explicit Concatenate(const ConcatenateOptions& options = {});
};

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
