#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/base/strings.hpp>

namespace tessera {
namespace {

std::string describe(const Json& json) {
  if (json.is_object()) return str("an object with ", json.size(), " keys");
  if (json.is_array()) return str("a list of ", json.size());
  if (json.is_string()) return in_quotes(json.get_ref<const std::string&>());
  return to_json_text(json);
}

template <class T>
void get_integer(const Json& json, const JsonPath& path, T& out) {
  using Limits = std::numeric_limits<T>;
  const bool fits = json.is_number_unsigned()  ? std::in_range<T>(json.get<uint64_t>())
                    : json.is_number_integer() ? std::in_range<T>(json.get<int64_t>())
                                               : false;
  if (!fits) json_fail(json, path, str("an integer in [", Limits::min(), ", ", Limits::max(), "]"));
  out = json.get<T>();
}

}  // namespace

JsonPath JsonPath::key(const std::string& name) const {
  JsonPath child = *this;
  child.path_ += (path_.empty() ? "" : ".") + name;
  return child;
}

JsonPath JsonPath::index(size_t position) const {
  JsonPath child = *this;
  child.path_ += str("[", position, "]");
  return child;
}

std::string JsonPath::text() const { return path_.empty() ? source_ : source_ + ": " + path_; }

void json_fail(const Json& json, const JsonPath& path, const std::string& expected) {
  throw ConfigError(path.text(), "the value must be " + expected, describe(json),
                    "correct the value");
}

void json_get(const Json& json, const JsonPath& path, bool& out) {
  if (!json.is_boolean()) json_fail(json, path, "true or false");
  out = json.get<bool>();
}

void json_get(const Json& json, const JsonPath& path, int& out) { get_integer(json, path, out); }

void json_get(const Json& json, const JsonPath& path, int64_t& out) {
  get_integer(json, path, out);
}

void json_get(const Json& json, const JsonPath& path, uint64_t& out) {
  get_integer(json, path, out);
}

void json_get(const Json& json, const JsonPath& path, float& out) {
  const auto value = json_as<double>(json, path);
  if (std::abs(value) > std::numeric_limits<float>::max()) {
    json_fail(json, path, "a number that fits float32");
  }
  out = static_cast<float>(value);
}

void json_get(const Json& json, const JsonPath& path, double& out) {
  if (!json.is_number()) json_fail(json, path, "a number");
  out = json.get<double>();
}

void json_get(const Json& json, const JsonPath& path, std::string& out) {
  if (!json.is_string()) json_fail(json, path, "a text in quotes");
  out = json.get_ref<const std::string&>();
}

void json_get(const Json& json, const JsonPath&, Json& out) { out = json; }

JsonObject::JsonObject(const Json& json, JsonPath path) : json_(&json), path_(std::move(path)) {
  if (!json.is_object()) json_fail(json, path_, "an object");
}

JsonObject JsonObject::take_object(const std::string& key) {
  return JsonObject(required(key), path_.key(key));
}

const Json* JsonObject::find(const std::string& key) {
  known_.push_back(key);
  const auto entry = json_->find(key);
  return entry == json_->end() ? nullptr : &*entry;
}

const Json& JsonObject::required(const std::string& key) {
  const Json* value = find(key);
  if (value != nullptr) return *value;
  std::vector<std::string> keys;
  for (const auto& entry : json_->items()) keys.push_back(entry.key());
  throw ConfigError(path_.text(), str("the key ", in_quotes(key), " is required"),
                    keys.empty() ? "an empty object" : "keys " + quoted_list(keys),
                    str("add ", in_quotes(key)));
}

void JsonObject::finish() const {
  for (const auto& entry : json_->items()) {
    if (std::find(known_.begin(), known_.end(), entry.key()) != known_.end()) continue;
    throw ConfigError(path_.text(), "every key must be known", in_quotes(entry.key()),
                      suggestion(entry.key(), known_));
  }
}

}  // namespace tessera
