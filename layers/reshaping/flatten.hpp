#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Flatten.
struct FlattenOptions {
  /// "channels_last", or "channels_first" where axis 1 holds channels and becomes the last one
  /// before the axes merge.
  std::string data_format = "channels_last";
  std::string name = "";   ///< first part of the weights' paths
  std::string dtype = "";  ///< policy; the default one if empty
  bool trainable = true;   ///< whether training changes the weights
};

/// All axes after the batch merged into one (keras.layers.Flatten).
///
/// Shape: (batch, …) -> (batch, product of the others).
/// Communication: none where shard borders stay: the first axis after the batch keeps its sharding
/// and takes over that of the others. Shards whose borders fall elsewhere fetch what they lack.
class Flatten : public LayerHandle {
 public:
  /// Throws ConfigError for another data_format.
  explicit Flatten(const FlattenOptions& options = {});
};

}  // namespace tessera
