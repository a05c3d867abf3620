#include <tessera/layers/preprocessing/rescaling.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace rescaling_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

TEST_CASE("Rescaling under every layout") {
  test::run_layer_test({.make = [] { return Rescaling(0.3, {.offset = -1}); },
                        .input = {{3, 4, 5}},
                        .output = {3, 4, 5},
                        .config = {{"scale", 0.3}, {"offset", -1.0}}});
  test::run_layer_test({.make =
                            [] {
                              return Rescaling({0.5, 0.1, 3}, {.offset = {1, 2, 3}});
                            },
                        .input = {{5, 2, 3}},
                        .output = {5, 2, 3},
                        .config = {{"scale", {0.5, 0.1, 3.0}}, {"offset", {1.0, 2.0, 3.0}}}});
}

TEST_CASE("Rescaling turns uint8 into floating point") {
  const at::Tensor x = at::tensor({0, 51, 255}, at::kByte).reshape({1, 3});
  const DTensor y = Rescaling(1.0 / 255)(pack(x, Layout::replicated(default_mesh(), 2)));
  CHECK(test::difference(y.full(), at::tensor({0.f, 0.2f, 1.f}).reshape({1, 3}), 1e-7) == "");
}

TEST_CASE("Rescaling takes every option by name and refuses invalid ones") {
  const LayerHandle layer =
      Rescaling(2, {.offset = {1, 2}, .name = "scale", .dtype = "float64", .trainable = false});
  CHECK(layer->config() == Json{{"name", "scale"},
                                {"trainable", false},
                                {"dtype", "float64"},
                                {"scale", 2.0},
                                {"offset", {1.0, 2.0}}});
  CHECK_THROWS_WITH(layer->build({{4, 3}}),
                    Contains("[Rescaling scale]") && Contains("offset (2,)") && Contains("(4, 3)"));
  CHECK_THROWS_WITH(Rescaling({1, 2, 3})->build({{4, 2}}), Contains("scale (3,)"));
  CHECK_THROWS_WITH(layer->build({{}}), Contains("offset (2,)"));
  CHECK_THROWS_AS(Rescaling(ArrayOption()), ConfigError);
}

}  // namespace rescaling_test
