#include <tessera/layers/activation/activation.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layer_check.hpp"

namespace elu_test {

using namespace tessera;

TEST_CASE("ELU under every layout") {
  test::run_layer_test({.make = [] { return ELU({.alpha = 0.5}); },
                        .input = {{3, 2, 3}},
                        .output = {3, 2, 3},
                        .config = {{"alpha", 0.5}}});
}

}  // namespace elu_test
