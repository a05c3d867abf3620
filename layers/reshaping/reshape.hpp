#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The elements of each row in row-major order under another shape (keras.layers.Reshape).
///
/// Shape: (batch, …) -> (batch, target_shape…). Throws ShapeError for an input of another number of
/// elements.
/// Communication: none where shard borders stay: the first of the axes that merge keeps its
/// sharding and takes over that of the others, and the sharding of one that splits stays on the
/// first part. Shards whose borders fall elsewhere fetch what they lack.
///
///     Reshape({28, 28, 1})
class Reshape : public LayerHandle {
 public:
  /// `target_shape`: without the batch; one extent may be -1, which follows from the others. Throws
  /// ConfigError for an extent below 1 that is not the only -1.
  explicit Reshape(const Shape& target_shape, const LayerOptions& options = {});
};

}  // namespace tessera
