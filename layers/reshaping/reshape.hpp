#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Reshapes each row, in row-major order (keras.layers.Reshape).
///
/// Shape: (batch, …) -> (batch, target_shape…). Throws ShapeError for an input of another number of
/// elements.
/// Communication: none if shard boundaries are preserved: axes that merge keep the first one's
/// sharding and take over that of the others; an axis that splits passes its sharding to the first
/// of the new axes. Otherwise shards fetch the elements they lack.
///
///     Reshape({28, 28, 1})
class Reshape : public LayerHandle {
 public:
  /// `target_shape`: without the batch; at most one extent is -1 and inferred from the others.
  /// Throws ConfigError for an extent below 1 that is not the only -1.
  explicit Reshape(const Shape& target_shape, const LayerOptions& options = {});
};

}  // namespace tessera
