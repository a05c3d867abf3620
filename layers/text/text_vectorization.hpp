#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/layers/text/lookup_handle.hpp>
#include <tessera/layers/text/text_steps.hpp>

namespace tessera {

/// Options of TextVectorization.
struct TextVectorizationOptions {
  std::optional<int64_t> max_tokens = std::nullopt;  ///< maximum vocabulary size (default: none)
  Standardize standardize = "lower_and_strip_punctuation";  ///< applied before a text is split
  Split split = "whitespace";                               ///< splits a text into tokens
  Ngrams ngrams = {};               ///< lengths of n-grams (default: single tokens)
  std::string output_mode = "int";  ///< "int", "multi_hot", "count" or "tf_idf"
  std::optional<int64_t> output_sequence_length = std::nullopt;  ///< default: the longest's
  bool pad_to_max_tokens = false;            ///< whether to return max_tokens columns
  std::vector<std::string> vocabulary = {};  ///< tokens; adapt() learns them if empty
  std::vector<double> idf_weights = {};      ///< weight of each token; "tf_idf" only
  bool sparse = false;                       ///< must be false: there are no sparse tensors
  bool ragged = false;                       ///< must be false: there are no ragged tensors
  std::string encoding = "utf-8";            ///< must be "utf-8"
  std::string name = "";                     ///< first component of the weights' paths
  std::string dtype = "";                    ///< dtype policy (default: the global policy)
  bool trainable = true;                     ///< whether training changes the weights
};

/// Encodes texts as numbers (keras.layers.TextVectorization): each text is standardized, split into
/// tokens, optionally joined to n-grams, and looked up in a vocabulary that adapt() learns. It runs
/// before a model, since texts are no tensors.
///
/// Shape: n texts -> "int" int64 [n, output_sequence_length or longest], padded with 0, 1 for
/// unknown tokens; "multi_hot", "count" and "tf_idf" float32 [n, vocabulary or max_tokens], index 0
/// for unknown tokens; tf_idf = count · log(1 + texts / (1 + texts with the token)).
/// Communication: none; each process makes the shards that it holds.
///
///     TextVectorization vectorize({.max_tokens = 1200, .output_mode = "tf_idf"});
///     vectorize.adapt(texts);
///     model.fit(vectorize.dataset(texts));
class TextVectorization : public LookupHandle {
 public:
  /// Throws ConfigError for options that do not fit together.
  explicit TextVectorization(const TextVectorizationOptions& options = {});
  /// Makes a layer from Keras' configuration. Throws ConfigError.
  static TextVectorization from_config(JsonObject& config);

  using LookupHandle::operator();
  /// Encodes a batch of texts, like transform().
  at::Tensor operator()(const std::vector<std::string>& texts) const { return transform(texts); }
  at::Tensor operator()(std::initializer_list<const char*> texts) const {
    return transform(std::vector<std::string>(texts.begin(), texts.end()));
  }
};

}  // namespace tessera
