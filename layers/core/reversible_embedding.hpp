#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of ReversibleEmbedding.
struct ReversibleEmbeddingOptions {
  bool tie_weights = true;  ///< whether reverse() uses the transpose of `embeddings`
  InitializerHandle embeddings_initializer = "uniform";  ///< initializer of the weights
  RegularizerHandle embeddings_regularizer = {};         ///< penalty on `embeddings`
  ConstraintHandle embeddings_constraint = {};           ///< constraint on `embeddings`
  bool mask_zero = false;  ///< whether id 0 is padding, which the output's mask excludes
  std::optional<std::string> reverse_dtype =
      std::nullopt;  ///< dtype of reverse() (default: compute dtype)
  std::optional<double> logit_soft_cap = std::nullopt;  ///< bound of reverse()'s results
  LayoutSpec embeddings_layout = {};  ///< layout of `embeddings`; overrides the layout map
  std::string name = "";              ///< first component of the weights' paths
  std::string dtype = "";             ///< dtype policy (default: the global policy)
  bool trainable = true;              ///< whether training changes the weights
};

/// An Embedding that also maps vectors back to scores of its rows
/// (keras.layers.ReversibleEmbedding).
///
/// Shape: (…) of any dtype -> (…, output_dim); reverse(): (…, output_dim) -> (…, input_dim).
/// Weights: embeddings (input_dim, output_dim); without tie_weights also reverse_embeddings
/// (output_dim, input_dim).
/// Communication: see Embedding. reverse(): none if `embeddings` is replicated or sharded on its
/// rows, which shards the last axis of the result; sharded on its columns it leaves a partial sum.
///
///     const ReversibleEmbedding words(20000, 64, {.name = "words"});
///     const DTensor vectors = words(x);
///     const DTensor logits = words.reverse(vectors);
class ReversibleEmbedding : public LayerHandle {
 public:
  /// A table of `input_dim` rows of `output_dim` elements. Throws ConfigError for a dimension < 1,
  /// a soft cap that is not positive or an unknown name.
  ReversibleEmbedding(int64_t input_dim, int64_t output_dim,
                      const ReversibleEmbeddingOptions& options = {});
  /// Returns the products of vectors with the rows, or with `reverse_embeddings`, and with
  /// logit_soft_cap c, c · tanh(products / c) (Keras' call with reverse=True). For call() of a
  /// layer or model of your own. Throws ShapeError unless the last axis has output_dim elements.
  DTensor reverse(const DTensor& vectors) const;
  /// Returns a layer that calls reverse(), the tied head of a Functional model; without a soft cap,
  /// losses of a large vocabulary need no whole logits (ops::deferred_logits). It has no weights of
  /// its own. A saved Functional model has it as a call of the embedding with reverse=True, without
  /// its name, as Keras does.
  LayerHandle reversed(const std::string& name = "") const;
};

}  // namespace tessera
