#pragma once

#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Axes after the batch in another order (keras.layers.Permute).
///
/// Shape: (batch, …) -> (batch, …), axis k of the output being axis dims[k - 1] of the input.
/// Throws ShapeError for an input of another rank.
/// Communication: none; sharding goes with the axes.
///
///     Permute({2, 1})   // (n, a, b) -> (n, b, a)
class Permute : public LayerHandle {
 public:
  /// `dims`: the input's axes, from 1 on. Throws ConfigError unless it holds each of 1, 2, … once.
  explicit Permute(const std::vector<int64_t>& dims, const LayerOptions& options = {});
};

}  // namespace tessera
