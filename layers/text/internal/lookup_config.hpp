#pragma once

#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/text/internal/index_lookup.hpp>
#include <tessera/layers/text/text_steps.hpp>

/// Reading and writing the options of text layers in configurations.
namespace tessera::detail {

/// Maximum number of words in an n-gram.
constexpr int64_t max_ngram_words = 1000;

/// Throws ConfigError for a sparse output or an encoding other than UTF-8.
void check_lookup_options(bool sparse, const std::string& encoding);

/// Writes the lookup's vocabulary and weights; null if assets() has them.
void put_vocabulary(Json& config, const IndexLookup& lookup);
/// Throws ConfigError unless "vocabulary" and "idf_weights" are lists or absent. Keras takes a
/// string for a path; here, a configuration never opens a file.
void check_vocabulary(JsonObject& config);

/// Throws ConfigError naming the argument for a function, which a configuration cannot hold.
template <class Result>
void check_named(const TextStep<Result>& step, const std::string& argument) {
  if (!step.function()) return;
  throw ConfigError(argument, "a name, to be written in a configuration",
                    "a function of the user's own",
                    "make the layer in code, and give it the vocabulary with load_assets()");
}

}  // namespace tessera::detail

// Found by argument-dependent lookup, hence in the namespace of TextStep and Ngrams.
namespace tessera {

/// Returns the name of a step, or null for none.
template <class Result>
Json option_json(const TextStep<Result>& step) {
  return step.name().empty() ? Json(nullptr) : Json(step.name());
}
/// Reads a name, or null for none. Throws ConfigError for anything else, such as the object that
/// Keras writes for a function.
template <class Result>
void read_option(JsonObject& config, const std::string& key, TextStep<Result>& out) {
  if (config.has(key)) out = TextStep<Result>(config.take_or<std::string>(key, ""));
}
/// Returns a number, a list, or null for none.
Json option_json(const Ngrams& ngrams);
/// Reads a number or a list of numbers. Throws ConfigError naming the JSON path.
void json_get(const Json& json, const detail::JsonPath& path, Ngrams& out);

}  // namespace tessera
