#include <tessera/layers/text/text_vectorization.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/strings.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/layers/text/lookup_config.hpp>

namespace tessera {
namespace {

constexpr int64_t max_ngram_words = 1000;

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
    throw ConfigError("output_mode", "one of " + quoted_list(modes),
                      in_quotes(options.output_mode), suggestion(options.output_mode, modes));
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

IndexLookupOptions lookup_options(const TextVectorizationOptions& options) {
  check(options);
  return {.max_tokens = options.max_tokens,
          .mask_token = "",
          .vocabulary = options.vocabulary,
          .idf_weights = options.idf_weights,
          .output_mode = options.output_mode,
          .pad_to_max_tokens = options.pad_to_max_tokens};
}

/// A text that is not split is one token.
std::optional<int64_t> sequence_length(const TextVectorizationOptions& options) {
  const bool whole = options.split.name().empty() && !options.split.function();
  if (options.output_sequence_length || !whole) return options.output_sequence_length;
  return options.ngrams.lengths().empty() ? std::optional<int64_t>(1) : std::nullopt;
}

Json ngrams_json(const Ngrams& ngrams) {
  if (ngrams.lengths().empty()) return nullptr;
  return ngrams.single() ? Json(ngrams.lengths().back()) : Json(ngrams.lengths());
}

Ngrams take_ngrams(JsonObject& config) {
  const auto json = config.take_optional<Json>("ngrams");
  if (!json) return {};
  const JsonPath path = config.path().key("ngrams");
  if (json->is_array()) return Ngrams(json_as<std::vector<int64_t>>(*json, path));
  const auto up_to = json_as<int64_t>(*json, path);
  // Listing them all must not be what fails.
  return Ngrams(std::min(up_to, max_ngram_words + 1));
}

}  // namespace

TextVectorizationLayer::TextVectorizationLayer(const TextVectorizationOptions& options)
    : LookupLayer("TextVectorization", {options.name, options.dtype, options.trainable},
                  lookup_options(options), sequence_length(options)),
      options_(options),
      tokenizer_(options.standardize, options.split) {}

Json TextVectorizationLayer::config() const {
  return named([&] {
    Json json = Layer::config();
    json["max_tokens"] = optional_json(options_.max_tokens);
    json["standardize"] = step_json(options_.standardize, "standardize");
    json["split"] = step_json(options_.split, "split");
    json["ngrams"] = ngrams_json(options_.ngrams);
    json["output_mode"] = options_.output_mode;
    json["output_sequence_length"] = optional_json(options_.output_sequence_length);
    json["pad_to_max_tokens"] = options_.pad_to_max_tokens;
    json["sparse"] = false;
    json["ragged"] = false;
    json["vocabulary"] = vocabulary_json(lookup());
    json["idf_weights"] = idf_weights_json(lookup());
    json["encoding"] = "utf-8";
    return json;
  });
}

TextVectorization TextVectorization::from_config(JsonObject& config) {
  const LayerOptions base = take_layer_options(config);
  // Keras counts the vocabulary here; the vocabulary itself tells.
  config.take_optional<Json>("vocabulary_size");
  return TextVectorization(
      {.max_tokens = config.take_optional<int64_t>("max_tokens"),
       .standardize =
           take_step<Standardize>(config, "standardize", "lower_and_strip_punctuation"),
       .split = take_step<Split>(config, "split", "whitespace"),
       .ngrams = take_ngrams(config),
       .output_mode = config.take_or<std::string>("output_mode", "int"),
       .output_sequence_length = config.take_optional<int64_t>("output_sequence_length"),
       .pad_to_max_tokens = config.take_or("pad_to_max_tokens", false),
       .vocabulary = take_vocabulary(config),
       .idf_weights = take_idf_weights(config),
       .sparse = config.take_or("sparse", false),
       .ragged = config.take_or("ragged", false),
       .encoding = config.take_or<std::string>("encoding", "utf-8"),
       .name = base.name,
       .dtype = base.dtype,
       .trainable = base.trainable});
}

}  // namespace tessera
