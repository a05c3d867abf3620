#include <tessera/framework/serving/http/predict_request.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <tessera/framework/base/internal/base64.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/serving/http/number_lists.hpp>

namespace tessera::detail {
namespace {

const std::vector<std::string> root_keys{"instances", "inputs", "signature_name"};
/// Names of the only input besides its own.
const std::vector<std::string> other_names{"text", "input"};
constexpr const char* bytes_key = "b64";

/// Builds a request from the JSON parser's events. Throws at the first invalid one.
class Reader : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(const PredictLimits& limits)
      : limits_(limits), inputs_(std::max<size_t>(1, limits.inputs.size())) {
    request_.more.resize(inputs_ - 1);
    more_shapes_.resize(inputs_ - 1);
  }

  PredictRequest read(std::string_view body) {
    Json::sax_parse(body.begin(), body.end(), this);
    if (!has_list_) {
      fail("\"instances\" or \"inputs\" is required", "neither", "write {\"instances\": [...]}");
    }
    for (size_t i = 0; i < inputs_; ++i) {
      const std::vector<int64_t>& extents = shape_of(i).extents;
      request_.input(i).shape.assign(extents.begin(), extents.end());
    }
    return std::move(request_);
  }

  bool null() override { fail_value("null"); }
  bool boolean(bool value) override {
    const char* const text = value ? "true" : "false";
    if (scope_ != Scope::list || bytes_) fail_value(text);
    if (!current().values.empty() && !current().is_bool) fail_value(str(text, " among numbers"));
    current().is_bool = true;
    return element(value ? 1 : 0);
  }
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
    const bool fits = scope_ == Scope::list && depth() == 1 && shape_of(input_).extents.size() <= 1;
    if (!fits) fail_value("a text");
    if (!current().values.empty()) fail_value("a text among numbers");
    check_named_value();
    count_instance();
    current().encoded += bytes_ ? 1 : 0;
    current().texts.push_back(bytes_ ? decoded(value) : std::move(value));
    return true;
  }

  bool start_object(std::size_t) override {
    if (scope_ == Scope::start) {
      scope_ = Scope::root;
    } else if (scope_ == Scope::root && key_ == "inputs") {
      if (has_list_) fail_both();
      scope_ = Scope::inputs;
      named_.assign(inputs_, false);
    } else if (scope_ == Scope::list && depth() == 1 && !bytes_) {
      if (instance_ || request_.columnar) {
        // The only object in place of a value.
        bytes_ = true;
        has_bytes_ = false;
        return true;
      }
      count_instance();
      instance_ = true;
      named_.assign(inputs_, false);
    } else {
      fail_value("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (scope_ == Scope::root) {
      root_key(name);
    } else if (bytes_) {
      if (name != bytes_key) fail_value("an object");
      if (has_bytes_) fail_again(name);
      has_bytes_ = true;
    } else if (scope_ == Scope::list && name == bytes_key && !any_named() && inputs_ == 1) {
      bytes_ = has_bytes_ = true;
    } else {
      input_ = index_of(name);
      if (named_[input_]) fail_again(name);
      named_[input_] = true;
    }
    key_ = std::move(name);
    return true;
  }

  bool end_object() override {
    if (std::exchange(bytes_, false)) {
      if (!has_bytes_) fail_value("an empty object");
      // Without a name, the object is the instance.
      if (!any_named()) instance_ = false;
      return true;
    }
    if (scope_ == Scope::root) return true;
    check_named();
    if (scope_ == Scope::inputs) scope_ = Scope::root;
    instance_ = false;
    input_ = 0;
    return true;
  }

  bool start_array(std::size_t) override {
    if (scope_ == Scope::list) return open_list();
    const bool starts = scope_ == Scope::inputs || (scope_ == Scope::root && is_list_key());
    if (!starts) fail_value("a list");
    if (has_list_ && scope_ == Scope::root) fail_both();
    has_list_ = true;
    named_inputs_ = scope_ == Scope::inputs;
    request_.columnar = named_inputs_ || key_ == "inputs";
    scope_ = Scope::list;
    if (request_.columnar && !named_inputs_) check_one_input("a list");
    counts_.push_back(0);
    return true;
  }

  bool end_array() override {
    const size_t level = depth() - 1;
    const int64_t count = counts_.back();
    if (count == 0) fail("a list must not be empty", "an empty list", "leave it out");
    // Instances may consist of several inputs, of which each has this number.
    const bool rows = level == 0 && !named_inputs_;
    for (size_t i = rows ? 0 : input_; i < (rows ? inputs_ : input_ + 1); ++i) {
      set_extent(shape_of(i).extents, level, count);
    }
    if (level == 0 && named_inputs_) check_rows(count);
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

  /// The shape of an input as far as it is known.
  struct InputShape {
    std::vector<int64_t> extents = {};  ///< extents of the closed lists, by depth
    size_t leaf_depth = 0;              ///< depth of the numbers; 0 before the first
  };

  size_t depth() const { return counts_.size(); }
  bool is_list_key() const { return key_ == "instances" || key_ == "inputs"; }
  PredictInput& current() { return request_.input(input_); }
  InputShape& shape_of(size_t input) { return input == 0 ? shape_ : more_shapes_[input - 1]; }
  bool any_named() const { return std::find(named_.begin(), named_.end(), true) != named_.end(); }

  void root_key(const std::string& name) {
    if (std::find(root_keys.begin(), root_keys.end(), name) == root_keys.end()) {
      fail("every key must be known", in_quotes(name), suggestion(name, root_keys));
    }
    if (std::find(keys_.begin(), keys_.end(), name) != keys_.end()) fail_again(name);
    keys_.push_back(name);
  }

  /// Returns the index of the input called `name`.
  size_t index_of(const std::string& name) const {
    const auto names = limits_.inputs;
    const auto own = std::find(names.begin(), names.end(), name);
    if (own != names.end()) return static_cast<size_t>(own - names.begin());
    std::vector<std::string> known(names.begin(), names.end());
    if (inputs_ == 1) {
      if (std::find(other_names.begin(), other_names.end(), name) != other_names.end()) return 0;
      known.insert(known.end(), other_names.begin(), other_names.end());
    }
    fail("every key must be known", in_quotes(name), suggestion(name, known));
  }

  /// Refuses an object that lacks an input.
  void check_named() const {
    const auto missing = std::find(named_.begin(), named_.end(), false);
    if (missing == named_.end()) return;
    if (!any_named()) {
      const bool unnamed = limits_.inputs.empty();
      fail(unnamed ? "an input is named \"text\" or \"input\"" : "inputs are named " + names(),
           "an empty object", "name it");
    }
    const auto index = static_cast<size_t>(missing - named_.begin());
    fail("every input of the model is required", "none called " + in_quotes(limits_.inputs[index]),
         "add it");
  }

  std::string names() const { return quoted_list({limits_.inputs.begin(), limits_.inputs.end()}); }

  /// Refuses an instance that is a value, if the model has several inputs.
  void check_named_value() const {
    if (inputs_ > 1 && depth() == 1 && !request_.columnar && !instance_) {
      check_one_input("a value without a name");
    }
  }

  void check_one_input(const std::string& received) const {
    if (inputs_ == 1) return;
    fail("the inputs " + names() + " are given by name", received,
         request_.columnar ? "write {\"inputs\": {\"NAME\": [...]}}"
                           : "write {\"instances\": [{\"NAME\": ...}]}");
  }

  void set_extent(std::vector<int64_t>& extents, size_t level, int64_t count) const {
    if (extents.size() <= level) extents.resize(level + 1, unknown);
    if (extents[level] == unknown) extents[level] = count;
    if (extents[level] == count) return;
    fail("all instances have one shape", str("a list of ", count, " after one of ", extents[level]),
         "make them equal");
  }

  /// Refuses inputs with different numbers of rows.
  void check_rows(int64_t count) {
    for (size_t i = 0; i < inputs_; ++i) {
      const std::vector<int64_t>& other = shape_of(i).extents;
      if (other.empty() || other[0] == count) continue;
      fail("all inputs have the same number of rows", str(count, " after ", other[0]),
           "make them equal");
    }
  }

  std::string decoded(const std::string& text) const {
    if (std::optional<std::string> bytes = from_base64(text)) return std::move(*bytes);
    fail("\"b64\" is base64, with padding", in_quotes(text.substr(0, 40)), "encode the bytes anew");
  }

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
      if (bytes_) fail("a value in an object is {\"b64\": \"...\"}", received, "write it so");
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

  [[noreturn]] void fail_both() const {
    fail("\"instances\" and \"inputs\" exclude each other", "both", "remove one of them");
  }

  [[noreturn]] void fail_again(const std::string& name) const {
    fail("every key must occur once", in_quotes(name) + " again", "remove one of the two");
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
    if (!current().texts.empty() || bytes_) fail_value("a list among texts");
    if (depth() == limits_.depth) {
      fail(str("lists are nested at most ", limits_.depth, " deep"), "one more",
           "send a flatter input");
    }
    check_named_value();
    count_instance();
    counts_.push_back(0);
    // A number has occurred at this depth.
    const size_t leaf_depth = shape_of(input_).leaf_depth;
    if (leaf_depth != 0 && depth() > leaf_depth) fail_value("a list among numbers");
    return true;
  }

  bool number(double value) {
    if (scope_ != Scope::list || bytes_ || !current().texts.empty()) fail_value("a number");
    if (current().is_bool) fail_value("a number among true and false");
    if (std::abs(value) > std::numeric_limits<float>::max()) {
      fail("a number must be in the range of float32", str(value), "scale the input");
    }
    return element(static_cast<float>(value));
  }

  bool element(float value) {
    if (!current().texts.empty()) fail_value("a value among texts");
    size_t& leaf_depth = shape_of(input_).leaf_depth;
    if (leaf_depth == 0) leaf_depth = depth();
    if (leaf_depth != depth()) fail_value("a number among lists");
    check_named_value();
    count_instance();
    current().values.push_back(value);
    return true;
  }

  const PredictLimits& limits_;
  size_t inputs_;  ///< number of the model's inputs
  PredictRequest request_;
  Scope scope_ = Scope::start;
  bool has_list_ = false;
  bool named_inputs_ = false;
  bool instance_ = false;   ///< whether inside the object that holds an instance
  bool bytes_ = false;      ///< whether inside {"b64": ...}
  bool has_bytes_ = false;  ///< whether that object has its key
  size_t input_ = 0;        ///< the input that values belong to
  std::string key_;
  std::vector<std::string> keys_;        ///< keys of the root object
  std::vector<bool> named_;              ///< inputs that the inner object has named
  std::vector<int64_t> counts_;          ///< elements so far of each open list
  InputShape shape_;                     ///< shape of the first input
  std::vector<InputShape> more_shapes_;  ///< shapes of the others
};

}  // namespace

PredictRequest parse_predict_request(std::string_view body, const PredictLimits& limits) {
  if (std::optional<PredictRequest> numbers = parse_number_lists(body, limits)) {
    return std::move(*numbers);
  }
  // The JSON library treats NUL as the end of the text.
  const size_t nul = body.find('\0');
  if (nul != std::string_view::npos) {
    throw RequestError(400, str("request, byte ", nul), "the body must be valid JSON", "a NUL byte",
                       "remove it, or write \\u0000 inside a string");
  }
  return Reader(limits).read(body);
}

}  // namespace tessera::detail
