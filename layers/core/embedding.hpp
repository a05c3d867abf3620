#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Embedding.
struct EmbeddingOptions {
  InitializerHandle embeddings_initializer = "uniform";  ///< initializer of `embeddings`
  RegularizerHandle embeddings_regularizer = {};         ///< penalty on `embeddings`
  ConstraintHandle embeddings_constraint = {};           ///< constraint on `embeddings`
  bool mask_zero = false;             ///< whether id 0 is padding, which the output's mask excludes
  LayoutSpec embeddings_layout = {};  ///< layout of `embeddings`; overrides the layout map
  std::string name = "";              ///< first component of the weights' paths
  std::string dtype = "";             ///< dtype policy (default: the global policy)
  bool trainable = true;              ///< whether training changes the weights
};

/// Looks up a row of a table for each id (keras.layers.Embedding). Floating-point ids are truncated
/// to integers. Throws ConfigError for an id outside [0, input_dim).
///
/// Shape: (…) of any dtype -> (…, output_dim).
/// Weights: embeddings (input_dim, output_dim).
/// Communication: none if `embeddings` is replicated or sharded on its columns, which shards the
/// last axis of the output. If it is sharded on its rows, one all-reduce of the output; the table
/// is never gathered. config() omits layouts, which belong to a mesh.
///
///     Embedding(20000, 64, {.mask_zero = true, .name = "words"})
class Embedding : public LayerHandle {
 public:
  /// A table of `input_dim` rows of `output_dim` elements. Throws ConfigError for a dimension < 1
  /// or an unknown name.
  Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options = {});
};

}  // namespace tessera
