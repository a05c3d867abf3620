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

/// Parses untrusted JSON. Throws ConfigError `[where:line:column] ...` for anything but one valid
/// JSON value, and also for nesting deeper than 64, a duplicate key in an object, a number beyond
/// float64, invalid UTF-8 or a NUL. Lines count from `first_line`.
Json parse_json(std::string_view text, const std::string& where, int64_t first_line = 1);

/// Calls parse_json() on the content of a file. Throws FileError if the file cannot be read.
Json read_json_file(const std::string& path);

/// Returns the JSON text; every float64 round-trips. Indents by `indent` spaces per level;
/// negative: all on one line. NaN and infinities, which JSON lacks, become null.
std::string to_json_text(const Json& json, int indent = 2);

namespace detail {

/// Path into a JSON value, for error texts: `layouts.json: layouts[1].match`, and how the values
/// below it may be written.
class JsonPath {
 public:
  /// The root of the value read from `source`, usually a file name.
  explicit JsonPath(std::string source) : source_(std::move(source)) {}

  JsonPath key(const std::string& name) const;
  JsonPath index(size_t position) const;
  std::string text() const;

  /// Returns this path for values as Python programs write them: a bool may be 0 or 1, and an
  /// integer a float without a fraction.
  JsonPath from_python() const;
  bool is_from_python() const { return from_python_; }

 private:
  std::string source_;
  std::string path_;
  bool from_python_ = false;
};

/// Reads `json` into `out`; throws ConfigError naming `path` if the type is wrong. Integers must be
/// written without fraction or exponent (but see JsonPath::from_python()) and fit their type; a
/// float may be written as an integer.
void json_get(const Json& json, const JsonPath& path, bool& out);
void json_get(const Json& json, const JsonPath& path, int& out);
void json_get(const Json& json, const JsonPath& path, int64_t& out);
void json_get(const Json& json, const JsonPath& path, uint64_t& out);
void json_get(const Json& json, const JsonPath& path, float& out);
void json_get(const Json& json, const JsonPath& path, double& out);
void json_get(const Json& json, const JsonPath& path, std::string& out);
void json_get(const Json& json, const JsonPath& path, Json& out);

/// Reads `null` as nullopt and anything else as a T.
template <class T>
void json_get(const Json& json, const JsonPath& path, std::optional<T>& out);

/// Reads a list of T.
template <class T>
void json_get(const Json& json, const JsonPath& path, std::vector<T>& out);

/// Throws ConfigError naming `path`, `expected`, and `json` as the value received.
[[noreturn]] void json_fail(const Json& json, const JsonPath& path, const std::string& expected);

/// Like json_get(), but returns the value.
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

/// Path into a JSON value, for error texts. Its class is in detail, whose readers of options are
/// found by argument-dependent lookup.
using JsonPath = detail::JsonPath;

/// Reads an object key by key; finish() rejects keys that were never read.
class JsonObject {
 public:
  /// `json` must outlive the reader. Throws ConfigError unless it is an object.
  JsonObject(const Json& json, detail::JsonPath path);

  /// Returns the value of a required key. Throws ConfigError if it is absent.
  template <class T>
  T take(const std::string& key) {
    return detail::json_as<T>(required(key), path_.key(key));
  }

  /// Returns the value of a key; nullopt if it is absent or null.
  template <class T>
  std::optional<T> take_optional(const std::string& key) {
    const Json* value = find(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    return detail::json_as<T>(*value, path_.key(key));
  }

  /// Returns the value of a key; `fallback` if it is absent or null.
  template <class T>
  T take_or(const std::string& key, T fallback) {
    return take_optional<T>(key).value_or(std::move(fallback));
  }

  /// Returns a reader for the object under a required key; call finish() on it, too.
  JsonObject take_object(const std::string& key);

  bool has(const std::string& key) const { return json_->contains(key); }

  /// Path of this object, for errors.
  const JsonPath& path() const { return path_; }

  /// Throws ConfigError if the object has a key that was never read.
  void finish() const;

 private:
  const Json* find(const std::string& key);
  const Json& required(const std::string& key);

  const Json* json_;
  detail::JsonPath path_;
  std::vector<std::string> known_;
};

}  // namespace tessera
