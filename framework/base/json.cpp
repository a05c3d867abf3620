#include <tessera/framework/base/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <unordered_set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr size_t max_depth = 64;
constexpr uint64_t max_file_bytes = uint64_t{256} << 20;

/// Returns the position of byte `offset` as "where:line:column"; lines count from `first_line`,
/// columns from 1, in characters.
std::string line_and_column(std::string_view text, size_t offset, const std::string& where,
                            int64_t first_line) {
  int64_t line = first_line;
  size_t column = 1;
  for (char c : text.substr(0, offset)) {
    const bool continuation = (static_cast<uint8_t>(c) & 0xC0) == 0x80;
    column = c == '\n' ? 1 : column + (continuation ? 0 : 1);
    line += c == '\n';
  }
  return str(where, ":", line, ":", column);
}

/// Iterator over a text that records how far the parser has read.
struct TrackedIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  const char** furthest;

  const char& operator*() const { return *at; }
  TrackedIterator& operator++() {
    *furthest = ++at;
    return *this;
  }
  bool operator==(const TrackedIterator& other) const { return at == other.at; }
  bool operator!=(const TrackedIterator& other) const { return at != other.at; }
};

/// Builds the value from the parser's events and enforces the limits of parse_json().
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, const std::string& where, int64_t first_line)
      : text_(text), where_(where), first_line_(first_line), furthest_(text.data()) {}

  Json build() {
    const TrackedIterator first{text_.data(), &furthest_};
    const TrackedIterator last{text_.data() + text_.size(), &furthest_};
    Json::sax_parse(first, last, this);
    return std::move(root_);
  }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (!open_.back().keys.insert(name).second) {
      fail("a key may appear only once in an object", in_quotes(name) + " again",
           "remove one of the two");
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: reason": keep the reason
    // only, as fail() adds the position.
    std::string reason = error.what();
    reason.erase(0, reason.find("] ") + 2);
    if (reason.starts_with("parse error at")) reason.erase(0, reason.find(": ") + 2);
    fail("the text must be valid JSON", one_line(reason, 200), "correct the text there");
  }

 private:
  struct Open {
    Json* container;
    std::unordered_set<std::string> keys;
  };

  [[noreturn]] void fail(const std::string& expected, const std::string& received,
                         const std::string& fix) const {
    const auto read = static_cast<size_t>(furthest_ - text_.data());
    throw ConfigError(line_and_column(text_, read > 0 ? read - 1 : 0, where_, first_line_),
                      expected, received, fix);
  }

  Json* place_value(Json&& value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back().container;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    // Appends without a lookup: key() has checked that the key is new.
    auto& entries = parent.get_ref<Json::object_t&>();
    return &entries.emplace_back(std::move(key_), std::move(value)).second;
  }

  bool add(Json value) {
    place_value(std::move(value));
    return true;
  }

  bool open(Json container) {
    if (open_.size() == max_depth) {
      fail(str("lists and objects may be nested at most ", max_depth, " deep"), "one more level",
           "use a flatter structure");
    }
    open_.push_back({place_value(std::move(container)), {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& where_;
  int64_t first_line_;
  const char* furthest_;
  Json root_;
  std::vector<Open> open_;
  std::string key_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& where, int64_t first_line) {
  // nlohmann/json treats a NUL as the end of the text.
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    throw ConfigError(line_and_column(text, nul, where, first_line), "the text must be valid JSON",
                      "a NUL byte", "remove it, or write \\u0000 inside a string");
  }
  return Builder(text, where, first_line).build();
}

Json read_json_file(const std::string& path) {
  return parse_json(read_file(path, max_file_bytes), path);
}

std::string to_json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

namespace {

std::string describe(const Json& json) {
  if (json.is_object()) return str("an object with ", json.size(), " keys");
  if (json.is_array()) return str("a list of ", json.size());
  if (json.is_string()) return in_quotes(json.get_ref<const std::string&>());
  return to_json_text(json);
}

/// Limit up to which float64 represents every integer.
constexpr double max_exact_integer = 9007199254740992;

/// Returns whether a float of a Python program stands for an integer.
bool is_python_integer(const Json& json, const JsonPath& path) {
  if (!path.is_from_python() || !json.is_number_float()) return false;
  const auto value = json.get<double>();
  return std::abs(value) <= max_exact_integer && value == std::trunc(value);
}

template <class T>
void get_integer(const Json& json, const JsonPath& path, T& out) {
  if (is_python_integer(json, path)) {
    const auto value = static_cast<int64_t>(json.get<double>());
    return get_integer(value < 0 ? Json(value) : Json(static_cast<uint64_t>(value)), path, out);
  }
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

JsonPath JsonPath::from_python() const {
  JsonPath path = *this;
  path.from_python_ = true;
  return path;
}

std::string JsonPath::text() const { return path_.empty() ? source_ : source_ + ": " + path_; }

void detail::json_fail(const Json& json, const JsonPath& path, const std::string& expected) {
  throw ConfigError(path.text(), "the value must be " + expected, describe(json),
                    "correct the value");
}

void detail::json_get(const Json& json, const JsonPath& path, bool& out) {
  const bool number = path.is_from_python() && json.is_number() && (json == 0 || json == 1);
  if (!json.is_boolean() && !number) json_fail(json, path, "true or false");
  out = number ? json == 1 : json.get<bool>();
}

void detail::json_get(const Json& json, const JsonPath& path, int& out) {
  get_integer(json, path, out);
}

void detail::json_get(const Json& json, const JsonPath& path, int64_t& out) {
  get_integer(json, path, out);
}

void detail::json_get(const Json& json, const JsonPath& path, uint64_t& out) {
  get_integer(json, path, out);
}

void detail::json_get(const Json& json, const JsonPath& path, float& out) {
  const auto value = json_as<double>(json, path);
  if (std::abs(value) > std::numeric_limits<float>::max()) {
    json_fail(json, path, "a number that fits float32");
  }
  out = static_cast<float>(value);
}

void detail::json_get(const Json& json, const JsonPath& path, double& out) {
  if (!json.is_number()) json_fail(json, path, "a number");
  out = json.get<double>();
}

void detail::json_get(const Json& json, const JsonPath& path, std::string& out) {
  if (!json.is_string()) json_fail(json, path, "a text in quotes");
  out = json.get_ref<const std::string&>();
}

void detail::json_get(const Json& json, const JsonPath&, Json& out) { out = json; }

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
