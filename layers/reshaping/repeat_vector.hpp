#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Repeats each row n times (keras.layers.RepeatVector).
///
/// Shape: (batch, features) -> (batch, n, features). Throws ShapeError for an input of another
/// rank.
/// Communication: none; the sharding is kept.
///
///     RepeatVector(3)
class RepeatVector : public LayerHandle {
 public:
  /// `n` copies. Throws ConfigError for n < 1.
  explicit RepeatVector(int64_t n, const LayerOptions& options = {});
};

}  // namespace tessera
