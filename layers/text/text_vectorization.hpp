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
  std::optional<int64_t> max_tokens = std::nullopt;         ///< most indices; no limit if absent
  Standardize standardize = "lower_and_strip_punctuation";  ///< done to a text before it is split
  Split split = "whitespace";                               ///< makes tokens of a text
  Ngrams ngrams = {};               ///< lengths of n-grams; tokens as they are if empty
  std::string output_mode = "int";  ///< "int", "multi_hot", "count" or "tf_idf"
  std::optional<int64_t> output_sequence_length = std::nullopt;  ///< the longest's if absent
  bool pad_to_max_tokens = false;            ///< gives max_tokens columns, not as many as indices
  std::vector<std::string> vocabulary = {};  ///< tokens; adapt() learns them if empty
  std::vector<double> idf_weights = {};      ///< one for each token; only for "tf_idf"
  bool sparse = false;                       ///< there are no sparse tensors: only false
  bool ragged = false;                       ///< there are no ragged tensors: only false
  std::string encoding = "utf-8";            ///< the only one
  std::string name = "";                     ///< first part of the weights' paths
  std::string dtype = "";                    ///< policy; the default one if empty
  bool trainable = true;                     ///< whether training changes the weights
};

/// Texts as numbers (keras.layers.TextVectorization): each is standardized, split into tokens,
/// optionally joined to n-grams, and looked up in a vocabulary that adapt() learns. It stands
/// before a model, for texts are no tensors.
///
/// Shape: n texts -> "int" int64 [n, output_sequence_length or longest], 0 behind the end and 1 for
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
  /// Makes the layer of Keras' configuration. Throws ConfigError.
  static TextVectorization from_config(JsonObject& config);

  using LookupHandle::operator();
  /// The batch of some texts, as transform() gives it.
  at::Tensor operator()(const std::vector<std::string>& texts) const { return transform(texts); }
  at::Tensor operator()(std::initializer_list<const char*> texts) const {
    return transform(std::vector<std::string>(texts.begin(), texts.end()));
  }
};

}  // namespace tessera
