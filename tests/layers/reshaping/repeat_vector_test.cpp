#include <tessera/layers/reshaping/reshape.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace repeat_vector_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

TEST_CASE("RepeatVector under every layout") {
  test::run_layer_test({.make = [] { return RepeatVector(3); },
                        .input = {{5, 4}},
                        .output = {5, 3, 4},
                        .config = {{"n", 3}}});
}

TEST_CASE("RepeatVector repeats each row") {
  const at::Tensor x = at::arange(6).reshape({2, 3});
  const DTensor y = RepeatVector(2)(pack(x, Layout::replicated(default_mesh(), 2)));
  CHECK(test::difference(y.full(), at::stack({x, x}, 1)) == "");
}

TEST_CASE("RepeatVector takes every option by name and refuses invalid ones") {
  const LayerHandle layer = RepeatVector(2, {.name = "r", .dtype = "float64", .trainable = false});
  CHECK(layer->config() ==
        Json{{"name", "r"}, {"trainable", false}, {"dtype", "float64"}, {"n", 2}});
  CHECK_THROWS_WITH(RepeatVector(0, {.name = "r"}),
                    Contains("[RepeatVector r]") && Contains("Received: 0"));
  CHECK_THROWS_WITH(layer->build({{4, 7, 2}}),
                    Contains("[RepeatVector r]") && Contains("(4, 7, 2)"));
}

}  // namespace repeat_vector_test
