#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Concatenate.
struct ConcatenateOptions {
  int64_t axis = -1;       ///< axis along which the inputs are joined; -1 is the last
  std::string name = "";   ///< first part of the weights' paths
  std::string dtype = "";  ///< policy; the default one if empty
  bool trainable = true;   ///< whether training changes the weights
};

/// Tensors joined along an axis (keras.layers.Concatenate). Where inputs have several dtypes, whole
/// numbers become the compute dtype. Masks are joined, too; all steps of an input without one
/// count.
///
/// Shape: (batch, …) of each, alike but for `axis` -> (batch, …), the sum of the extents on `axis`.
/// Throws ShapeError for other inputs, and for none.
/// Communication: none where `axis` is whole; parts that are cut along it fetch what their new
/// shards lack. The other axes keep their sharding.
///
///     Concatenate({.axis = 1})({left, right})
class Concatenate : public LayerHandle {
 public:
  explicit Concatenate(const ConcatenateOptions& options = {});
};

}  // namespace tessera
