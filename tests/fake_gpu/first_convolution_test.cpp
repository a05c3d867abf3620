#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/fake_gpu/gpus.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"

namespace first_convolution_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("the first convolution of a process, on a CPU", "[.]") {
  CHECK(test::fake_gpu::loads() == 0);
  ops::matmul(ones({2, 3}), ones({3, 2}));
  CHECK(test::fake_gpu::loads() == 0);
  const DTensor y = Conv2D(2, {3, 3})(ones({1, 5, 5, 1}));
  CHECK(y.shape() == Shape{1, 3, 3, 2});
  CHECK(test::fake_gpu::loads() == 1);
  // ATen caches what it learned about GPUs once they existed.
  CHECK(at::ones({2}).to(test::device(0)).sum().item<float>() == 2);
}

TEST_CASE("a CPU convolution before the first GPU loads what GPUs need") {
  const test::ProgramRun run =
      test::run_program(std::filesystem::path(TESSERA_BIN_DIR) / "fake_gpu_test",
                        {"the first convolution of a process*"});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Catch::Matchers::Contains("All tests passed (5 assertions in 1 test case)"));
}

}  // namespace first_convolution_test
