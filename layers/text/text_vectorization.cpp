#include <tessera/layers/text/text_vectorization.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/layers/text/internal/lookup_config.hpp>
#include <tessera/layers/text/internal/lookup_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(TextVectorizationOptions& o, const Visit& visit) {
  visit("max_tokens", o.max_tokens);
  visit("standardize", o.standardize);
  visit("split", o.split);
  visit("ngrams", o.ngrams);
  visit("output_mode", o.output_mode);
  visit("output_sequence_length", o.output_sequence_length);
  visit("pad_to_max_tokens", o.pad_to_max_tokens);
  visit("sparse", o.sparse);
  visit("ragged", o.ragged);
  visit("vocabulary", o.vocabulary);
  visit("idf_weights", o.idf_weights);
  visit("encoding", o.encoding);
}

namespace {

class TextVectorizationLayer final : public LookupLayer {
 public:
  explicit TextVectorizationLayer(const TextVectorizationOptions& options);
  /// Throws ConfigError for user-defined functions.
  Json config() const override;

 protected:
  void tokenize(std::string_view text, Tokens& out) const override { splitter_(text, out); }
  const std::vector<int64_t>& ngrams() const override { return options_.ngrams.lengths(); }

 private:
  TextVectorizationOptions options_;  ///< without the vocabulary, which lookup() holds
  WordSplitter splitter_;
};

const RegisteredLayer registered_text_vectorization("TextVectorization",
                                                    TextVectorization::from_config);

void check_ngrams(const Ngrams& ngrams) {
  for (const int64_t n : ngrams.lengths()) {
    if (n >= 1 && n <= max_ngram_words) continue;
    throw ConfigError("ngrams", str("lengths from 1 to ", max_ngram_words), str(n),
                      "leave it out for single tokens");
  }
}

void check(const TextVectorizationOptions& options) {
  check_lookup_options(options.sparse, options.encoding);
  if (options.ragged) {
    throw ConfigError("ragged", "false: there are no ragged tensors", "true",
                      "set output_sequence_length, or pad to the longest text");
  }
  const std::vector<std::string> modes = {"int", "multi_hot", "count", "tf_idf"};
  if (std::find(modes.begin(), modes.end(), options.output_mode) == modes.end()) {
    throw ConfigError("output_mode", "one of " + quoted_list(modes), in_quotes(options.output_mode),
                      suggestion(options.output_mode, modes));
  }
  check_ngrams(options.ngrams);
  const auto& length = options.output_sequence_length;
  if (!length) return;
  if (options.output_mode != "int") {
    throw ConfigError("output_sequence_length", "only where output_mode is \"int\"",
                      "output_mode " + in_quotes(options.output_mode), "leave it out");
  }
  if (*length >= 1 && *length <= INT32_MAX) return;
  throw ConfigError("output_sequence_length", str("1 to ", INT32_MAX), str(*length),
                    "leave it out for the longest text's");
}

IndexLookupOptions text_vectorization_options(const TextVectorizationOptions& options) {
  check(options);
  return {.max_tokens = options.max_tokens,
          .mask_token = "",
          .vocabulary = options.vocabulary,
          .idf_weights = options.idf_weights,
          .output_mode = options.output_mode,
          .pad_to_max_tokens = options.pad_to_max_tokens};
}

/// Returns the fixed sequence length, if any: 1 if texts are not split, as each is one token.
std::optional<int64_t> sequence_length(const TextVectorizationOptions& options) {
  const bool is_unsplit = options.split.name().empty() && !options.split.function();
  if (options.output_sequence_length || !is_unsplit) return options.output_sequence_length;
  return options.ngrams.lengths().empty() ? std::optional<int64_t>(1) : std::nullopt;
}

TextVectorizationLayer::TextVectorizationLayer(const TextVectorizationOptions& options)
    : LookupLayer("TextVectorization", common_options(options), text_vectorization_options(options),
                  sequence_length(options)),
      options_(options),
      splitter_(options.standardize, options.split) {
  options_.vocabulary.clear();
  options_.idf_weights.clear();
  options_.encoding = "utf-8";
}

Json TextVectorizationLayer::config() const {
  with_error_location([&] {
    check_named(options_.standardize, "standardize");
    check_named(options_.split, "split");
  });
  Json json = layer_config(*this, Json::object(), options_);
  put_vocabulary(json, lookup());
  return json;
}

}  // namespace

TextVectorization::TextVectorization(const TextVectorizationOptions& options)
    : LookupHandle(make_lookup<TextVectorizationLayer>("TextVectorization", options)) {}

TextVectorization TextVectorization::from_config(JsonObject& config) {
  // "vocabulary_size" follows from the vocabulary.
  config.take_optional<Json>("vocabulary_size");
  check_vocabulary(config);
  return TextVectorization(layer_options_from<TextVectorizationOptions>(config));
}

}  // namespace tessera
