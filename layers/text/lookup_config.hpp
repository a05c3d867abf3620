#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/layers/text/index_lookup.hpp>
#include <tessera/layers/text/tokenizer.hpp>

namespace tessera {

/// Throws ConfigError unless the output is dense and texts are UTF-8.
void check_lookup_options(bool sparse, const std::string& encoding);

/// A number, or null for none.
Json optional_json(const std::optional<int64_t>& number);
/// The options' vocabulary and weights, null where assets() has them.
Json vocabulary_json(const IndexLookup& lookup);
Json idf_weights_json(const IndexLookup& lookup);

/// Takes "vocabulary" and "idf_weights". Throws ConfigError for a text, which Keras takes for a
/// path: a configuration never opens one.
std::vector<std::string> take_vocabulary(JsonObject& config);
std::vector<double> take_idf_weights(JsonObject& config);

/// A name, or null for none. Throws ConfigError naming the argument for a function.
template <class Result>
Json step_json(const TextStep<Result>& step, const std::string& argument) {
  if (step.function()) {
    throw ConfigError(argument, "a name, to be written in a configuration",
                      "a function of the user's own",
                      "make the layer in code, and give it the vocabulary with load_assets()");
  }
  return step.name().empty() ? Json(nullptr) : Json(step.name());
}

/// Takes a name, or null for none; the fallback where it is absent. Throws ConfigError for
/// anything else, as for the object that Keras writes for a function.
template <class Step>
Step take_step(JsonObject& config, const std::string& key, const char* fallback) {
  if (!config.has(key)) return Step(fallback);
  return Step(config.take_or<std::string>(key, ""));
}

}  // namespace tessera
