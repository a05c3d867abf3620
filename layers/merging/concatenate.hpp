#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

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

}  // namespace tessera
