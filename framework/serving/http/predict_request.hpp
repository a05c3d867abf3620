#pragma once

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

/// The content of a predict request: texts, or numbers of one shape.
struct PredictRequest {
  std::vector<std::string> texts;
  std::vector<float> values;  ///< row-major
  Shape shape;                ///< [instances, ...]: the shape of the values or texts
  bool columnar = false;      ///< "inputs" instead of "instances": answered with "outputs"

  int64_t instances() const { return shape.empty() ? 0 : shape[0]; }
  bool is_text() const { return !texts.empty(); }
};

/// Parses the body of a predict request of TensorFlow Serving's REST API: {"instances": [...]},
/// where each instance is a text, {"text": "..."}, a number or a nested list of numbers, or
/// {"inputs": [...]} or {"inputs": {"text": [...]}}. Numbers use the key "input" instead of "text".
/// "signature_name" may be "serving_default". Stops at the first error. Throws RequestError: status
/// 413 for too many instances, 400 for any other error.
PredictRequest parse_predict_request(std::string_view body, const PredictLimits& limits = {});

/// Returns the response body: {"predictions": [...]} or, if `columnar`, {"outputs": [...]}, with
/// the values [rows, ...] as nested lists of the shortest decimals that parse to the same float32,
/// and "labels": [...] with one label per row if there are any. Values must be finite.
std::string predict_reply(std::span<const float> values, const Shape& shape,
                          std::span<const std::string> labels, bool columnar);

/// Returns {"error": "..."}, TensorFlow Serving's error body.
std::string error_reply(const std::string& text);

}  // namespace tessera::detail
