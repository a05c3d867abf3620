#include <tessera/layers/activation/activation.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layer_check.hpp"

namespace leaky_relu_test {

using namespace tessera;
using Catch::Matchers::Contains;

TEST_CASE("LeakyReLU under every layout") {
  test::run_layer_test({.make = [] { return LeakyReLU(); },
                        .input = {{5, 4}},
                        .output = {5, 4},
                        .config = {{"negative_slope", 0.3}}});
}

TEST_CASE("LeakyReLU refuses invalid arguments by name") {
  CHECK_THROWS_WITH(LeakyReLU({.negative_slope = -1, .name = "r"}),
                    Contains("[LeakyReLU r]") && Contains("Received: -1"));
}

}  // namespace leaky_relu_test
