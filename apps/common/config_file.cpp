#include "apps/common/config_file.hpp"

#include <algorithm>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>

namespace tessera::app {

using namespace detail;

namespace {

std::string sizes_text(const Json& json, const JsonPath& path) {
  if (!json.is_object()) json_fail(json, path, "an object such as {\"batch\": 4}");
  std::vector<std::string> sizes;
  for (const auto& entry : json.items()) {
    const auto size = json_as<int64_t>(entry.value(), path.key(entry.key()));
    sizes.push_back(entry.key() + "=" + std::to_string(size));
  }
  return join(sizes, ",");
}

std::string integers_text(const Json& json, const JsonPath& path) {
  std::vector<std::string> numbers;
  for (int64_t number : json_as<std::vector<int64_t>>(json, path)) {
    numbers.push_back(std::to_string(number));
  }
  return join(numbers, ",");
}

/// Converts a JSON value to the text that the command line would have.
std::string argument_text(const Json& json, const JsonPath& path, JsonType type) {
  const bool text_allowed =
      type == JsonType::count || type == JsonType::integers || type == JsonType::sizes;
  if (text_allowed && json.is_string()) return json_as<std::string>(json, path);
  switch (type) {
    case JsonType::text:
      return json_as<std::string>(json, path);
    case JsonType::boolean:
      return json_as<bool>(json, path) ? "true" : "false";
    case JsonType::number:
      if (!json.is_number()) json_fail(json, path, "a number");
      return to_json_text(json);
    case JsonType::integers:
      return integers_text(json, path);
    case JsonType::sizes:
      return sizes_text(json, path);
    case JsonType::integer:
    case JsonType::count:
      break;
  }
  return std::to_string(json_as<int64_t>(json, path));
}

std::string key_of(const Option& option) {
  std::string key = option.name;
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

}  // namespace

void read_config_file(const std::string& path, const std::vector<Option>& options) {
  const Json json = read_json_file(path);
  JsonObject object(json, JsonPath(path));
  std::vector<std::optional<Json>> values;
  for (const Option& option : options) values.push_back(object.take_optional<Json>(key_of(option)));
  object.finish();
  for (size_t i = 0; i < options.size(); ++i) {
    if (!values[i]) continue;
    const JsonPath key_path = object.path().key(key_of(options[i]));
    const OptionValue& value = options[i].value;
    value.set(key_path.text(), argument_text(*values[i], key_path, value.json_type));
  }
}

}  // namespace tessera::app
