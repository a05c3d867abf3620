#include <tessera/layers/normalization/normalization.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layer_check.hpp"

namespace group_normalization_test {

using namespace tessera;
using Catch::Matchers::Contains;

TEST_CASE("GroupNormalization under every layout") {
  test::run_golden_layer_test({.make = [] { return GroupNormalization({.groups = 3}); },
                               .input = {{2, 5, 6}},
                               .output = {2, 5, 6},
                               .weights = {{"gamma", {6}}, {"beta", {6}}}});
}

TEST_CASE("GroupNormalization refuses invalid arguments by name") {
  CHECK_THROWS_WITH(GroupNormalization({.groups = 0, .name = "g"}),
                    Contains("[GroupNormalization g]") && Contains("Received: 0"));
  CHECK_THROWS_WITH(GroupNormalization({.groups = 4, .name = "g"})->build({{2, 5, 6}}),
                    Contains("[GroupNormalization g] 4 groups divide axis -1"));
  CHECK_THROWS_WITH(GroupNormalization({.groups = 1, .axis = 0})->build({{2, 5, 6}}),
                    Contains("axis is not the batch axis"));
}

}  // namespace group_normalization_test
