#include <tessera/layers/normalization/normalization.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace unit_normalization_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

TEST_CASE("UnitNormalization under every layout") {
  test::run_layer_test({.make =
                            [] {
                              return UnitNormalization({.axis = {-1, 1}});
                            },
                        .input = {{5, 4, 3}},
                        .output = {5, 4, 3},
                        .config = {{"axis", {-1, 1}}}});
}

TEST_CASE("UnitNormalization leaves zero vectors unchanged") {
  const DTensor zero = UnitNormalization()(zeros({2, 3}));
  CHECK(difference(zero.full(), at::zeros({2, 3})) == "");
}

TEST_CASE("UnitNormalization refuses invalid arguments by name") {
  CHECK_THROWS_WITH(UnitNormalization({.axis = {-3}, .name = "u"})->build({{3, 4}}),
                    Contains("[UnitNormalization u]"));
  CHECK_THROWS_WITH(UnitNormalization({.axis = {}}), Contains("at least one axis"));
}

}  // namespace unit_normalization_test
