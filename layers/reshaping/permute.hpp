#pragma once

#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Permutes the axes after the batch (keras.layers.Permute).
///
/// Shape: (batch, …) -> (batch, …), where output axis k is input axis dims[k - 1]. Throws
/// ShapeError for an input of another rank.
/// Communication: none; each axis keeps its sharding.
///
///     Permute({2, 1})   // (n, a, b) -> (n, b, a)
class Permute : public LayerHandle {
 public:
  /// `dims`: the input's axes, from 1 on. Throws ConfigError unless it holds each of 1, 2, … once.
  explicit Permute(const std::vector<int64_t>& dims, const LayerOptions& options = {});
};

}  // namespace tessera
