#include <tessera/layers/kind/new_layer.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace new_layer_test {

using namespace tessera;
using Catch::Matchers::Contains;

// Also restores the layer from its configuration by name.
TEST_CASE("NewLayer under every layout") {
  test::run_layer_test({.make = [] { return NewLayer({.factor = 3}); },
                        .input = {{4, 6}},
                        .output = {4, 6},
                        .weights = {{"offset", {6}}},
                        .config = {{"factor", 3}}});
}

TEST_CASE("NewLayer multiplies") {
  CHECK(test::difference(NewLayer()(ones({2, 3})).full(), at::full({2, 3}, 2.0)) == "");
}

TEST_CASE("NewLayer refuses a factor of 0, by name") {
  CHECK_THROWS_WITH(NewLayer({.factor = 0, .name = "n"}), Contains("[NewLayer n]"));
}

}  // namespace new_layer_test
