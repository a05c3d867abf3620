#include <tessera/layers/text/internal/lookup_config.hpp>

#include <algorithm>

#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {

void check_lookup_options(bool sparse, const std::string& encoding) {
  if (sparse) {
    throw ConfigError("sparse", "false: there are no sparse tensors", "true",
                      "leave it out; dataset() keeps texts without their zeros");
  }
  if (encoding != "utf-8" && encoding != "UTF-8") {
    throw ConfigError("encoding", "\"utf-8\"", in_quotes(encoding), "leave it out");
  }
}

void put_vocabulary(Json& config, const IndexLookup& lookup) {
  if (!lookup.in_config()) return;
  config["vocabulary"] = option_json(lookup.options().vocabulary);
  config["idf_weights"] = option_json(lookup.options().idf_weights);
}

void check_vocabulary(JsonObject& config) {
  config.take_optional<std::vector<double>>("idf_weights");
  const auto json = config.take_optional<Json>("vocabulary");
  if (!json) return;
  const JsonPath path = config.path().key("vocabulary");
  if (json->is_string()) {
    throw ConfigError(path.text(), "a list of tokens: a configuration opens no file",
                      in_quotes(json->get<std::string>()),
                      "read the file yourself and call set_vocabulary()");
  }
  if (json->empty()) json_fail(*json, path, "at least one token");
}

}  // namespace tessera::detail

namespace tessera {

using namespace detail;

Json option_json(const Ngrams& ngrams) {
  if (ngrams.lengths().empty()) return nullptr;
  return ngrams.single() ? Json(ngrams.lengths().back()) : Json(ngrams.lengths());
}

void json_get(const Json& json, const JsonPath& path, Ngrams& out) {
  if (json.is_array()) {
    out = Ngrams(json_as<std::vector<int64_t>>(json, path));
  } else {
    // Limited, as Ngrams lists all lengths up to a number; check_ngrams() rejects it later.
    out = Ngrams(std::min(json_as<int64_t>(json, path), max_ngram_words + 1));
  }
}

}  // namespace tessera
