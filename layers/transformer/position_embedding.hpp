#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of PositionEmbedding.
struct PositionEmbeddingOptions {
  InitializerHandle initializer = "glorot_uniform";  ///< initializer of `embeddings`
  bool add = false;        ///< whether to return the sum of input and embeddings
  std::string name = "";   ///< first component of the weights' paths
  std::string dtype = "";  ///< dtype policy (default: the global policy)
  bool trainable = true;   ///< whether training changes the weights
};

/// Learns a vector for each position of a sequence (keras_hub.layers.PositionEmbedding), which is
/// added to the features there: `x + positions(x)`, or `add`.
///
/// Shape: (batch…, T, features) with T at most sequence_length, then optionally document ids,
/// integers (batch, T), as TransformerBlock takes them -> that of the first; positions begin at 0
/// in each document. Of the first input only the shape is read, except with `add`, where the mask
/// passes through too. With a KeyValueCache, the input holds the new steps only. Throws ShapeError
/// for a longer sequence, where KerasHub combines vectors hierarchically. Weights: embeddings
/// (sequence_length, features). Communication: none, except that the rows are gathered if
/// `embeddings` is sharded on them.
///
///     PositionEmbedding(1024, {.add = true, .name = "positions"})
class PositionEmbedding : public LayerHandle {
 public:
  /// `sequence_length`: maximum number of steps. Throws ConfigError if it is less than 1.
  explicit PositionEmbedding(int64_t sequence_length, const PositionEmbeddingOptions& options = {});
};

}  // namespace tessera
