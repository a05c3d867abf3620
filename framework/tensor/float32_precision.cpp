#include <tessera/framework/tensor/float32_precision.hpp>

#include <mutex>

#include <ATen/Context.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

std::mutex precision_mutex;

std::string& matmul_precision() {
  static std::string precision = "highest";
  return precision;
}

}  // namespace

void set_float32_matmul_precision(const std::string& precision) {
  if (precision != "highest" && precision != "high" && precision != "medium") {
    throw ConfigError("set_float32_matmul_precision",
                      "precision must be \"highest\", \"high\" or \"medium\"", in_quotes(precision),
                      "pass one of them");
  }
  {
    const std::lock_guard<std::mutex> lock(precision_mutex);
    matmul_precision() = precision;
  }
  apply_float32_precision();
}

std::string detail::float32_matmul_precision() {
  const std::lock_guard<std::mutex> lock(precision_mutex);
  return matmul_precision();
}

void detail::apply_float32_precision() {
  const std::string precision = float32_matmul_precision();
  at::globalContext().setFloat32MatmulPrecision(precision);
  at::globalContext().setAllowTF32CuDNN(precision != "highest");
}

}  // namespace tessera
