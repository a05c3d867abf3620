#include <tessera/framework/serving/http/predict_request.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>

namespace tessera::detail {
namespace {

const std::vector<std::string> root_keys{"instances", "inputs", "signature_name"};
const std::vector<std::string> input_keys{"text", "input"};

/// Builds a request from the JSON parser's events. Throws at the first invalid one.
class Reader : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(const PredictLimits& limits) : limits_(limits) {}

  PredictRequest read(std::string_view body) {
    Json::sax_parse(body.begin(), body.end(), this);
    if (!has_list_) {
      fail("\"instances\" or \"inputs\" is required", "neither", "write {\"instances\": [...]}");
    }
    request_.shape.assign(extents_.begin(), extents_.end());
    return std::move(request_);
  }

  bool null() override { fail_value("null"); }
  bool boolean(bool value) override { fail_value(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool binary(binary_t&) override { fail_value("bytes"); }

  bool string(string_t& value) override {
    if (scope_ == Scope::root && key_ == "signature_name") return signature(value);
    if (scope_ != Scope::list || depth() != 1 || extents_.size() > 1) fail_value("a text");
    if (!request_.values.empty()) fail_value("a text among numbers");
    count_instance();
    request_.texts.push_back(std::move(value));
    return true;
  }

  bool start_object(std::size_t) override {
    if (scope_ == Scope::start) {
      scope_ = Scope::root;
    } else if (scope_ == Scope::root && key_ == "inputs") {
      scope_ = Scope::inputs;
      named_ = false;
    } else if (scope_ == Scope::list && depth() == 1 && !instance_ && !request_.columnar) {
      count_instance();
      instance_ = true;
      named_ = false;
    } else {
      fail_value("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    const bool root = scope_ == Scope::root;
    const std::vector<std::string>& known = root ? root_keys : input_keys;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      fail("every key must be known", in_quotes(name), suggestion(name, known));
    }
    if (root ? std::find(keys_.begin(), keys_.end(), name) != keys_.end() : named_) {
      fail("every key must occur once", in_quotes(name) + " again", "remove one of the two");
    }
    if (root) keys_.push_back(name);
    named_ = true;
    key_ = name;
    return true;
  }

  bool end_object() override {
    if (scope_ == Scope::root) return true;
    if (!named_) fail("an input is named \"text\" or \"input\"", "an empty object", "name it");
    if (scope_ == Scope::inputs) scope_ = Scope::root;
    instance_ = false;
    return true;
  }

  bool start_array(std::size_t) override {
    if (scope_ == Scope::list) return open_list();
    const bool starts = scope_ == Scope::inputs || (scope_ == Scope::root && is_list_key());
    if (!starts) fail_value("a list");
    if (has_list_) {
      fail("\"instances\" and \"inputs\" exclude each other", "both", "remove one of them");
    }
    has_list_ = true;
    named_inputs_ = scope_ == Scope::inputs;
    request_.columnar = named_inputs_ || key_ == "inputs";
    scope_ = Scope::list;
    counts_.push_back(0);
    return true;
  }

  bool end_array() override {
    const size_t level = depth() - 1;
    const int64_t count = counts_.back();
    if (count == 0) fail("a list must not be empty", "an empty list", "leave it out");
    if (extents_.size() <= level) extents_.resize(level + 1, unknown);
    if (extents_[level] == unknown) extents_[level] = count;
    if (extents_[level] != count) {
      fail("all instances have one shape",
           str("a list of ", count, " after one of ", extents_[level]), "make them equal");
    }
    counts_.pop_back();
    if (counts_.empty()) scope_ = named_inputs_ ? Scope::inputs : Scope::root;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const Json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: reason".
    std::string reason = error.what();
    reason.erase(0, reason.find("] ") + 2);
    throw RequestError(400, str("request, byte ", position), "the body must be valid JSON",
                       one_line(reason, 200), "correct the body");
  }

 private:
  enum class Scope : uint8_t { start, root, inputs, list };
  static constexpr int64_t unknown = -1;

  size_t depth() const { return counts_.size(); }
  bool is_list_key() const { return key_ == "instances" || key_ == "inputs"; }

  std::string where() const {
    std::string text = "request";
    if (scope_ == Scope::list) text += request_.columnar ? ", inputs" : ", instances";
    for (size_t i = 0; i < depth(); ++i) {
      // An element that is a list or object is counted when it begins.
      const bool begun = i + 1 < depth() || (i == 0 && instance_);
      text += str("[", counts_[i] - (begun ? 1 : 0), "]");
    }
    return text;
  }

  [[noreturn]] void fail(const std::string& expected, const std::string& received,
                         const std::string& fix) const {
    throw RequestError(400, where(), expected, received, fix);
  }

  [[noreturn]] void fail_value(const std::string& received) const {
    if (scope_ == Scope::list) {
      fail("instances are all texts, or all lists of numbers of one shape", received,
           "write for example {\"instances\": [\"a text\"]}");
    }
    if (scope_ == Scope::root && key_ == "signature_name") {
      fail("\"signature_name\" is a text", received, "leave it out");
    }
    if (scope_ != Scope::start) {
      fail(in_quotes(key_) + " is a list", received, "put it in [...]");
    }
    fail("the body is an object with a list \"instances\"", received,
         "write {\"instances\": [...]}");
  }

  bool signature(const std::string& name) const {
    if (name == "serving_default" || name.empty()) return true;
    fail("the signature is \"serving_default\"", in_quotes(name), "leave \"signature_name\" out");
  }

  /// Counts an element of the innermost list. An element in an object was counted with the object.
  void count_instance() {
    if (instance_ && depth() == 1) return;
    if (depth() == 1 && counts_.back() == limits_.instances) {
      throw RequestError(413, where(),
                         str("a request has at most ", limits_.instances, " instances"), "more",
                         "send several requests");
    }
    ++counts_.back();
  }

  bool open_list() {
    if (!request_.texts.empty()) fail_value("a list among texts");
    if (depth() == limits_.depth) {
      fail(str("lists are nested at most ", limits_.depth, " deep"), "one more",
           "send a flatter input");
    }
    count_instance();
    counts_.push_back(0);
    // A number has occurred at this depth.
    if (leaf_depth_ != 0 && depth() > leaf_depth_) fail_value("a list among numbers");
    return true;
  }

  bool number(double value) {
    if (scope_ != Scope::list || !request_.texts.empty()) fail_value("a number");
    if (leaf_depth_ == 0) leaf_depth_ = depth();
    if (leaf_depth_ != depth()) fail_value("a number among lists");
    if (std::abs(value) > std::numeric_limits<float>::max()) {
      fail("a number must be in the range of float32", str(value), "scale the input");
    }
    count_instance();
    request_.values.push_back(static_cast<float>(value));
    return true;
  }

  const PredictLimits& limits_;
  PredictRequest request_;
  Scope scope_ = Scope::start;
  bool has_list_ = false;
  bool named_inputs_ = false;
  bool instance_ = false;  ///< whether inside the object that holds an instance
  bool named_ = false;     ///< whether the inner object has its key
  std::string key_;
  std::vector<std::string> keys_;  ///< keys of the root object
  std::vector<int64_t> counts_;    ///< elements so far of each open list
  std::vector<int64_t> extents_;   ///< extents of the closed lists, by depth
  size_t leaf_depth_ = 0;          ///< depth of the numbers; 0 before the first
};

void append_number(std::string& text, float value) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text.append(digits.data(), end);
}

/// Appends the values of one index of the axes before `axis` as nested lists; returns the rest.
std::span<const float> append_values(std::string& text, std::span<const float> values,
                                     const Shape& shape, size_t axis) {
  if (axis == shape.size()) {
    append_number(text, values[0]);
    return values.subspan(1);
  }
  text += '[';
  for (int64_t i = 0; i < shape[axis]; ++i) {
    if (i > 0) text += ", ";
    values = append_values(text, values, shape, axis + 1);
  }
  text += ']';
  return values;
}

}  // namespace

PredictRequest parse_predict_request(std::string_view body, const PredictLimits& limits) {
  // The JSON library treats NUL as the end of the text.
  const size_t nul = body.find('\0');
  if (nul != std::string_view::npos) {
    throw RequestError(400, str("request, byte ", nul), "the body must be valid JSON", "a NUL byte",
                       "remove it, or write \\u0000 inside a string");
  }
  return Reader(limits).read(body);
}

std::string predict_reply(std::span<const float> values, const Shape& shape,
                          std::span<const std::string> labels, bool columnar) {
  std::string text = columnar ? "{\"outputs\": " : "{\"predictions\": ";
  append_values(text, values, shape, 0);
  if (!labels.empty()) {
    const std::vector<std::string> list(labels.begin(), labels.end());
    text += ", \"labels\": " + to_json_text(list, -1);
  }
  return text + "}\n";
}

std::string error_reply(const std::string& text) {
  return to_json_text({{"error", text}}, -1) + "\n";
}

}  // namespace tessera::detail
