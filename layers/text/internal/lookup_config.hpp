#pragma once

#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/text/internal/index_lookup.hpp>
#include <tessera/layers/text/text_steps.hpp>

/// The options of text layers in their configurations.
namespace tessera::detail {

/// Words of the longest n-gram.
constexpr int64_t max_ngram_words = 1000;

/// Throws ConfigError unless the output is dense and texts are UTF-8.
void check_lookup_options(bool sparse, const std::string& encoding);

/// Writes the lookup's vocabulary and weights, null where assets() has them.
void put_vocabulary(Json& config, const IndexLookup& lookup);
/// Throws ConfigError unless "vocabulary" and "idf_weights" are lists or absent. Keras takes a text
/// for a path: a configuration never opens one.
void check_vocabulary(JsonObject& config);

/// Throws ConfigError naming the argument for a function, which has no place in a configuration.
template <class Result>
void check_named(const TextStep<Result>& step, const std::string& argument) {
  if (!step.function()) return;
  throw ConfigError(argument, "a name, to be written in a configuration",
                    "a function of the user's own",
                    "make the layer in code, and give it the vocabulary with load_assets()");
}
/// The name of a step, or null for none.
template <class Result>
Json option_json(const TextStep<Result>& step) {
  return step.name().empty() ? Json(nullptr) : Json(step.name());
}
/// Takes a name, or null for none. Throws ConfigError for anything else, as for the object that
/// Keras writes for a function.
template <class Result>
void read_option(JsonObject& given, const std::string& key, TextStep<Result>& out) {
  if (given.has(key)) out = TextStep<Result>(given.take_or<std::string>(key, ""));
}

}  // namespace tessera::detail

// Found by their arguments, so they are where those are.
namespace tessera {

/// A number, a list, or null for none.
Json option_json(const Ngrams& ngrams);
/// A number or a list of them. Throws ConfigError naming the place.
void json_get(const Json& json, const detail::JsonPath& path, Ngrams& out);

}  // namespace tessera
