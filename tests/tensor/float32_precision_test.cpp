#include <tessera/framework/tensor/float32_precision.hpp>

#include <ATen/Context.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace float32_precision_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("the precision of float32 products is set in ATen, convolutions included") {
  CHECK(float32_matmul_precision() == "highest");
  set_float32_matmul_precision("high");
  CHECK(float32_matmul_precision() == "high");
  CHECK(at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::HIGH);
  CHECK(at::globalContext().allowTF32CuDNN());
  CHECK_THROWS_WITH(
      set_float32_matmul_precision("tf32"),
      "[set_float32_matmul_precision] precision must be \"highest\", \"high\" or \"medium\". "
      "Received: \"tf32\". To fix: pass one of them.");
  set_float32_matmul_precision("highest");
  CHECK(at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::HIGHEST);
  CHECK_FALSE(at::globalContext().allowTF32CuDNN());
}

}  // namespace float32_precision_test
