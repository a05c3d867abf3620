#include <tessera/layers/normalization/normalization.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layer_check.hpp"

namespace rms_normalization_test {

using namespace tessera;
using Catch::Matchers::Contains;

TEST_CASE("RMSNormalization under every layout") {
  test::run_golden_layer_test({.make = [] { return RMSNormalization({.axis = {1}}); },
                               .input = {{2, 3, 4}},
                               .output = {2, 3, 4},
                               .weights = {{"scale", {3}}}});
}

TEST_CASE("RMSNormalization refuses invalid arguments by name") {
  CHECK_THROWS_WITH(RMSNormalization({.axis = {}, .name = "r"}), Contains("[RMSNormalization r]"));
  CHECK_THROWS_WITH(RMSNormalization({.axis = {2}, .name = "r"})->build({{3, 4}}),
                    Contains("[RMSNormalization r]") && Contains("axis 2"));
}

}  // namespace rms_normalization_test
