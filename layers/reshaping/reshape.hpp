#pragma once

#include <vector>

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

/// The options of Flatten.
struct FlattenOptions {
  /// "channels_last", or "channels_first": axis 1 holds the channels and is moved to the end before
  /// the axes merge.
  std::string data_format = "channels_last";
  std::string name = "";   ///< first component of the weights' paths
  std::string dtype = "";  ///< dtype policy (default: the global policy)
  bool trainable = true;   ///< whether training changes the weights
};

/// Merges all axes after the batch into one (keras.layers.Flatten).
///
/// Shape: (batch, …) -> (batch, product of the other extents).
/// Communication: none if shard boundaries are preserved: the merged axis keeps the first axis'
/// sharding and takes over that of the others. Otherwise shards fetch the elements they lack.
class Flatten : public LayerHandle {
 public:
  /// Throws ConfigError for an unknown data_format.
  explicit Flatten(const FlattenOptions& options = {});
};

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
