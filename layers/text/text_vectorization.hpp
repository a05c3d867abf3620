#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/layers/text/lookup_layer.hpp>

namespace tessera {

struct TextVectorizationOptions {
  std::optional<int64_t> max_tokens = std::nullopt;  ///< none: as many as there are
  Standardize standardize = "lower_and_strip_punctuation";
  Split split = "whitespace";
  Ngrams ngrams = {};
  std::string output_mode = "int";
  std::optional<int64_t> output_sequence_length = std::nullopt;  ///< only for "int"
  bool pad_to_max_tokens = false;
  std::vector<std::string> vocabulary = {};  ///< none: adapt() learns it
  std::vector<double> idf_weights = {};      ///< only for "tf_idf"
  bool sparse = false;                       ///< there are no sparse tensors: only false
  bool ragged = false;                       ///< there are no ragged tensors: only false
  std::string encoding = "utf-8";            ///< the only one
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// Texts as numbers (keras.layers.TextVectorization): each is standardized, split into tokens,
/// optionally joined to n-grams, and looked up in a vocabulary that adapt() learns.
/// Output of n texts: "int" int64 [n, output_sequence_length or longest], 0 behind the end and 1
/// for unknown tokens; "multi_hot", "count" and "tf_idf" float32 [n, vocabulary or max_tokens],
/// index 0 for unknown tokens; tf_idf = count · log(1 + texts / (1 + texts with the token)).
class TextVectorizationLayer final : public LookupLayer {
 public:
  explicit TextVectorizationLayer(const TextVectorizationOptions& options);
  /// Throws ConfigError for functions of the user's own.
  Json config() const override;

 protected:
  void tokenize(std::string_view text, Tokens& out) const override { tokenizer_(text, out); }
  const std::vector<int64_t>& ngrams() const override { return options_.ngrams.lengths(); }

 private:
  TextVectorizationOptions options_;
  Tokenizer tokenizer_;
};

/// Stands before a model, for texts are no tensors:
///
///     TextVectorization vectorize({.max_tokens = 1200, .output_mode = "tf_idf"});
///     vectorize.adapt(texts);
///     model.fit(vectorize.dataset(texts));
class TextVectorization : public LookupHandle {
 public:
  /// Throws ConfigError for options that do not fit together.
  explicit TextVectorization(const TextVectorizationOptions& options = {})
      : LookupHandle(make<TextVectorizationLayer>("TextVectorization", options)) {}
  static TextVectorization from_config(JsonObject& config);

  using LookupHandle::operator();
  at::Tensor operator()(const std::vector<std::string>& texts) const { return transform(texts); }
  at::Tensor operator()(std::initializer_list<const char*> texts) const {
    return transform(std::vector<std::string>(texts.begin(), texts.end()));
  }
};

}  // namespace tessera
