#include <cmath>
#include <cstddef>
#include <cstdint>

#include <tessera/framework/serving/http/predict_request.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const PredictLimits limits;
  PredictRequest request;
  try {
    request = parse_predict_request({reinterpret_cast<const char*>(data), size}, limits);
  } catch (const RequestError& error) {
    fuzz::require(error.status() >= 400 && error.status() < 500);
    fuzz::require(!error_reply(error.what()).empty());
    return 0;
  }
  uint64_t count = 1;
  for (const int64_t extent : request.shape) count *= static_cast<uint64_t>(extent);
  fuzz::require(request.instances() >= 1 && request.instances() <= limits.instances);
  fuzz::require(count == (request.is_text() ? request.texts.size() : request.values.size()));
  for (const float value : request.values) fuzz::require(std::isfinite(value));
  if (!request.is_text()) {
    fuzz::require(!predict_reply(request.values, request.shape, {}, request.columnar).empty());
  }
  return 0;
}
