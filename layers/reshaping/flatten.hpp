#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

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

}  // namespace tessera
