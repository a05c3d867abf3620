#include <tessera/layers/regularization/activity_regularization.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layer_check.hpp"

namespace activity_regularization_test {

using namespace tessera;
using Catch::Matchers::Contains;

TEST_CASE("ActivityRegularization under every layout") {
  test::run_layer_test({.make = [] { return ActivityRegularization({.l1 = 0.1, .l2 = 0.2}); },
                        .input = {{5, 4}},
                        .output = {5, 4},
                        .config = {{"l1", 0.1}, {"l2", 0.2}}});
}

TEST_CASE("ActivityRegularization refuses invalid arguments by name") {
  CHECK_THROWS_WITH(ActivityRegularization({.l1 = -1, .name = "a"}),
                    Contains("[ActivityRegularization a") && Contains("-1"));
}

}  // namespace activity_regularization_test
