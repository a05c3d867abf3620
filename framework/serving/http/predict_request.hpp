#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// What the body of a request may hold at most; its size is the HTTP server's to limit.
struct PredictLimits {
  int64_t instances = 256;
  size_t depth = 8;  ///< lists in lists
};

/// A request that is refused, with the HTTP status to answer.
class RequestError : public Error {
 public:
  RequestError(int status, const std::string& where, const std::string& expected,
               const std::string& received, const std::string& fix)
      : Error(where, expected, received, fix), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

/// What a predict request asks: texts, or numbers of one shape.
struct PredictRequest {
  std::vector<std::string> texts;
  std::vector<float> values;  ///< row-major
  Shape shape;                ///< [instances, ...], of the values or the texts
  bool columnar = false;      ///< "inputs" instead of "instances": answered with "outputs"

  int64_t instances() const { return shape.empty() ? 0 : shape[0]; }
  bool is_text() const { return !texts.empty(); }
};

/// Reads the body of a request as TensorFlow Serving's REST interface has it: {"instances": [...]}
/// with a text, {"text": "..."}, a number or nested lists of numbers in each place, or
/// {"inputs": [...]}, {"inputs": {"text": [...]}}; "signature_name" may say "serving_default", and
/// numbers may stand under "input" where texts stand under "text". Nothing is kept of a body that
/// does not fit. Throws RequestError: status 413 for too many instances, else 400.
PredictRequest parse_predict_request(std::string_view body, const PredictLimits& limits = {});

/// The answer to it: {"predictions": [...]} or {"outputs": [...]} with the values [rows, ...] as
/// nested lists of the shortest decimals that read back as the same float32, and, if there are any,
/// {"labels": [...]} with one label for each row. Values must be finite.
std::string predict_reply(std::span<const float> values, const Shape& shape,
                          std::span<const std::string> labels, bool columnar);

/// {"error": "..."}, as TensorFlow Serving answers what it refuses.
std::string error_reply(const std::string& text);

}  // namespace tessera::detail
