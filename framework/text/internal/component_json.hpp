#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/text/internal/regular_expression.hpp>

namespace tessera::detail {

/// Makes a part of a tokenizer from its object, whose other keys it reads.
template <class Made>
using ComponentMakers = std::map<std::string, std::function<Made(JsonObject&)>>;

/// Makes a part of a tokenizer by its key "type". Throws ConfigError naming file and path for a
/// type that is not in `makers`, and for keys that the type has not.
template <class Made>
Made make_component(const Json& json, const JsonPath& path, const std::string& what,
                    const ComponentMakers<Made>& makers) {
  JsonObject object(json, path);
  const auto type = object.take<std::string>("type");
  const auto maker = makers.find(type);
  if (maker == makers.end()) {
    std::vector<std::string> names;
    for (const auto& [name, make] : makers) names.push_back(name);
    throw ConfigError(path.key("type").text(),
                      "a " + what + " that is implemented: " + quoted_list(names), in_quotes(type),
                      suggestion(type, names));
  }
  Made made = maker->second(object);
  object.finish();
  return made;
}

/// Makes each part of the list under `key`.
template <class Made>
std::vector<Made> make_components(JsonObject& object, const std::string& key,
                                  Made (*make)(const Json&, const JsonPath&)) {
  const Json list = object.take<Json>(key);
  const JsonPath path = object.path().key(key);
  if (!list.is_array()) json_fail(list, path, "a list");
  std::vector<Made> made;
  for (size_t i = 0; i < list.size(); ++i) made.push_back(make(list[i], path.index(i)));
  return made;
}

/// Finds the matches of a pattern in a text.
using MatchFinder = std::function<void(std::string_view text, std::vector<TextRange>& out)>;

/// Reads {"String": text} or {"Regex": pattern} under the key "pattern".
MatchFinder take_pattern(JsonObject& object);

/// Replaces all matches in a text by `content`.
void replace_matches(const MatchFinder& find, const std::string& content, std::string& text);

/// Reads a single character under `key`, in UTF-8.
std::string take_character(JsonObject& object, const std::string& key);

}  // namespace tessera::detail
