#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace tessera {

/// A JSON value; the keys of its objects keep their order.
using Json = nlohmann::ordered_json;

namespace detail {

/// Value of a JSON text that nobody vouches for. Throws ConfigError
/// `[where:line:column] ...` for anything but one valid JSON value: also for nesting deeper than
/// 64, a key twice in one object, a number beyond float64, bytes that are not UTF-8 or a NUL.
Json parse_json(std::string_view text, const std::string& where);

/// parse_json of a file. Throws FileError if the file cannot be read.
Json read_json_file(const std::string& path);

/// JSON text; every float64 reads back as the same value. `indent` spaces a level, all on one line
/// if negative. NaN and infinities, which JSON lacks, become null.
std::string to_json_text(const Json& json, int indent = 2);

/// A place in a JSON value, for error texts: `layouts.json: layouts[1].match`.
class JsonPath {
 public:
  /// The root of the value read from `source`, usually a file name.
  explicit JsonPath(std::string source) : source_(std::move(source)) {}

  JsonPath key(const std::string& name) const;
  JsonPath index(size_t position) const;
  std::string text() const;

 private:
  std::string source_;
  std::string path_;
};

/// Typed readers: `out` from `json`, or ConfigError naming `path`. An integer must be written
/// without fraction or exponent and fit its type; a float may be written as an integer.
void json_get(const Json& json, const JsonPath& path, bool& out);
void json_get(const Json& json, const JsonPath& path, int& out);
void json_get(const Json& json, const JsonPath& path, int64_t& out);
void json_get(const Json& json, const JsonPath& path, uint64_t& out);
void json_get(const Json& json, const JsonPath& path, float& out);
void json_get(const Json& json, const JsonPath& path, double& out);
void json_get(const Json& json, const JsonPath& path, std::string& out);
void json_get(const Json& json, const JsonPath& path, Json& out);

/// `null` is nothing, all else a T.
template <class T>
void json_get(const Json& json, const JsonPath& path, std::optional<T>& out);

/// A list of T.
template <class T>
void json_get(const Json& json, const JsonPath& path, std::vector<T>& out);

/// Throws ConfigError: at `path` something else is expected than `json`.
[[noreturn]] void json_fail(const Json& json, const JsonPath& path, const std::string& expected);

/// json_get as a function.
template <class T>
T json_as(const Json& json, const JsonPath& path) {
  T value{};
  json_get(json, path, value);
  return value;
}

template <class T>
void json_get(const Json& json, const JsonPath& path, std::optional<T>& out) {
  out.reset();
  if (!json.is_null()) out = json_as<T>(json, path);
}

template <class T>
void json_get(const Json& json, const JsonPath& path, std::vector<T>& out) {
  if (!json.is_array()) json_fail(json, path, "a list");
  out.clear();
  for (size_t i = 0; i < json.size(); ++i) out.push_back(json_as<T>(json[i], path.index(i)));
}

}  // namespace detail

/// Reads an object key by key and complains about the keys that nobody read.
class JsonObject {
 public:
  /// `json` must outlive the reader. Throws ConfigError unless it is an object.
  JsonObject(const Json& json, detail::JsonPath path);

  /// Value of a key that must be there. Throws ConfigError.
  template <class T>
  T take(const std::string& key) {
    return detail::json_as<T>(required(key), path_.key(key));
  }

  /// Value of a key, or nothing where it is absent or null.
  template <class T>
  std::optional<T> take_optional(const std::string& key) {
    const Json* value = find(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    return detail::json_as<T>(*value, path_.key(key));
  }

  /// Value of a key, or `fallback` where it is absent or null.
  template <class T>
  T take_or(const std::string& key, T fallback) {
    return take_optional<T>(key).value_or(std::move(fallback));
  }

  /// Reader of the object under a key that must be there; it wants a finish() of its own.
  JsonObject take_object(const std::string& key);

  bool has(const std::string& key) const { return json_->contains(key); }

  /// Place of this object, to name it in further errors.
  const detail::JsonPath& path() const { return path_; }

  /// Throws ConfigError if the object has a key that none of the calls above asked for.
  void finish() const;

 private:
  const Json* find(const std::string& key);
  const Json& required(const std::string& key);

  const Json* json_;
  detail::JsonPath path_;
  std::vector<std::string> known_;
};

}  // namespace tessera
