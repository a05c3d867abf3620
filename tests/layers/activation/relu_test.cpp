#include <tessera/layers/activation/activation.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layer_check.hpp"

namespace relu_test {

using namespace tessera;
using Catch::Matchers::Contains;

TEST_CASE("ReLU under every layout") {
  test::run_layer_test(
      {.make = [] { return ReLU({.max_value = 0.8, .negative_slope = 0.1, .threshold = 0.2}); },
       .input = {{5, 4}},
       .output = {5, 4},
       .config = {{"max_value", 0.8}, {"negative_slope", 0.1}, {"threshold", 0.2}}});
}

TEST_CASE("ReLU refuses invalid arguments by name") {
  CHECK_THROWS_WITH(ReLU({.max_value = -1, .name = "r"}),
                    Contains("[ReLU r] max_value") && Contains("Received: -1"));
  CHECK_THROWS_WITH(ReLU({.negative_slope = -0.5, .name = "r"}), Contains("negative_slope"));
  CHECK_THROWS_WITH(ReLU({.threshold = -2, .name = "r"}), Contains("threshold"));
}

}  // namespace relu_test
