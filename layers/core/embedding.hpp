#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Embedding.
struct EmbeddingOptions {
  InitializerHandle embeddings_initializer = "uniform";  ///< first values of `embeddings`
  RegularizerHandle embeddings_regularizer = {};         ///< penalty on `embeddings`
  ConstraintHandle embeddings_constraint = {};           ///< what `embeddings` is brought back to
  bool mask_zero = false;             ///< number 0 is padding, which the output's mask leaves out
  LayoutSpec embeddings_layout = {};  ///< layout of `embeddings`, over any layout map
  std::string name = "";              ///< first part of the weights' paths
  std::string dtype = "";             ///< policy; the default one if empty
  bool trainable = true;              ///< whether training changes the weights
};

/// A row of a table for each number (keras.layers.Embedding). Floating numbers are cut off to whole
/// ones. Throws ConfigError for a number outside [0, input_dim).
///
/// Shape: (…) of any dtype -> (…, output_dim).
/// Weights: embeddings (input_dim, output_dim).
/// Communication: none if `embeddings` is whole or sharded on its columns, as the last axis of the
/// output then is; sharded on its rows, one all-reduce of the output, and no copy of the table.
/// config() holds no layouts: they belong to a mesh.
///
///     Embedding(20000, 64, {.mask_zero = true, .name = "words"})
class Embedding : public LayerHandle {
 public:
  /// A table of `input_dim` rows of `output_dim` numbers. Throws ConfigError for a dimension < 1 or
  /// an unknown name.
  Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options = {});
};

}  // namespace tessera
