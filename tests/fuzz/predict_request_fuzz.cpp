#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/framework/serving/http/predict_reply.hpp>
#include <tessera/framework/serving/http/predict_request.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Checks an input of a request with this number of instances.
void require_rows(const PredictInput& input, int64_t instances) {
  uint64_t count = 1;
  for (const int64_t extent : input.shape) count *= static_cast<uint64_t>(extent);
  fuzz::require(!input.shape.empty() && input.shape[0] == instances);
  fuzz::require(count == (input.is_text() ? input.texts.size() : input.values.size()));
  fuzz::require(!input.is_text() || (input.values.empty() && !input.is_bool));
  for (const float value : input.values) fuzz::require(std::isfinite(value));
}

/// Parses a body for a model with two inputs.
void parse_for_two(std::string_view body) {
  const std::array<std::string, 2> names{"text", "b"};
  try {
    const PredictRequest request = parse_predict_request(body, {.inputs = names});
    fuzz::require(request.inputs() == 2);
    for (size_t i = 0; i < 2; ++i) require_rows(request.input(i), request.instances());
  } catch (const RequestError& error) {
    fuzz::require(error.status() >= 400 && error.status() < 500);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const PredictLimits limits;
  PredictRequest request;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  parse_for_two(body);
  try {
    request = parse_predict_request(body, limits);
  } catch (const RequestError& error) {
    fuzz::require(error.status() >= 400 && error.status() < 500);
    fuzz::require(!error_reply(error.what()).empty());
    return 0;
  }
  fuzz::require(request.instances() >= 1 && request.instances() <= limits.instances);
  require_rows(request, request.instances());
  if (!request.is_text()) {
    fuzz::require(!predict_reply(request.values, request.shape, {}, request.columnar).empty());
  }
  return 0;
}
