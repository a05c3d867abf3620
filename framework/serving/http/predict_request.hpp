#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// Limits on the content of a request body; the HTTP server limits its size.
struct PredictLimits {
  int64_t instances = 256;
  size_t depth = 8;  ///< maximum nesting of lists
  /// Names of the model's inputs. Empty: one input, "text" or "input".
  std::span<const std::string> inputs = {};
};

/// An invalid request, with the HTTP status to answer.
class RequestError : public Error {
 public:
  RequestError(int status, const std::string& where, const std::string& expected,
               const std::string& received, const std::string& fix)
      : Error(where, expected, received, fix), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

/// The rows of one input: texts, numbers of one shape, or true and false of one shape.
struct PredictInput {
  std::vector<std::string> texts = {};
  std::vector<float> values = {};  ///< row-major
  Shape shape = {};                ///< [instances, ...]: the shape of the values or texts
  bool is_bool = false;            ///< whether the values were true and false
  size_t encoded = 0;              ///< number of texts that were bytes in base64

  bool is_text() const { return !texts.empty(); }
};

/// The content of a predict request: the rows of the first input, and those of all others.
struct PredictRequest : PredictInput {
  std::vector<PredictInput> more = {};  ///< in the order of the model's inputs
  bool columnar = false;  ///< "inputs" instead of "instances": answered with "outputs"
  size_t signature = 0;   ///< identifies the names of inputs that it was parsed with

  int64_t instances() const { return shape.empty() ? 0 : shape[0]; }
  /// Returns the number of inputs.
  size_t inputs() const { return 1 + more.size(); }
  PredictInput& input(size_t index) { return index == 0 ? *this : more[index - 1]; }
  const PredictInput& input(size_t index) const { return index == 0 ? *this : more[index - 1]; }
};

/// Parses the body of a predict request of TensorFlow Serving's REST API: {"instances": [...]},
/// where each instance is a text, a number, true or false, a nested list of these two, or an object
/// of them by the names of the model's inputs; or {"inputs": [...]} or {"inputs": {"NAME": [...]}}.
/// The only input may also be called "text" or "input". A text may be {"b64": "..."}, its bytes in
/// base64. "signature_name" may be "serving_default". Stops at the first error. Throws
/// RequestError: status 413 for too many instances, 400 for any other error.
PredictRequest parse_predict_request(std::string_view body, const PredictLimits& limits = {});

}  // namespace tessera::detail
