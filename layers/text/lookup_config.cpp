#include <tessera/layers/text/lookup_config.hpp>

#include <tessera/framework/base/strings.hpp>

namespace tessera {

void check_lookup_options(bool sparse, const std::string& encoding) {
  if (sparse) {
    throw ConfigError("sparse", "false: there are no sparse tensors", "true",
                      "leave it out; dataset() keeps texts without their zeros");
  }
  if (encoding != "utf-8" && encoding != "UTF-8") {
    throw ConfigError("encoding", "\"utf-8\"", in_quotes(encoding), "leave it out");
  }
}

Json optional_json(const std::optional<int64_t>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json vocabulary_json(const IndexLookup& lookup) {
  return lookup.in_config() ? Json(lookup.options().vocabulary) : Json(nullptr);
}

Json idf_weights_json(const IndexLookup& lookup) {
  const bool written = lookup.in_config() && !lookup.options().idf_weights.empty();
  return written ? Json(lookup.options().idf_weights) : Json(nullptr);
}

std::vector<std::string> take_vocabulary(JsonObject& config) {
  const auto json = config.take_optional<Json>("vocabulary");
  if (!json) return {};
  const JsonPath path = config.path().key("vocabulary");
  if (json->is_string()) {
    throw ConfigError(path.text(), "a list of tokens: a configuration opens no file",
                      in_quotes(json->get<std::string>()),
                      "read the file yourself and call set_vocabulary()");
  }
  if (json->empty()) json_fail(*json, path, "at least one token");
  return json_as<std::vector<std::string>>(*json, path);
}

std::vector<double> take_idf_weights(JsonObject& config) {
  return config.take_or<std::vector<double>>("idf_weights", {});
}

}  // namespace tessera
