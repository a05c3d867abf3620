#include <tessera/layers/core/masking.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace masking_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

TEST_CASE("Masking under every layout") {
  test::run_layer_test({.make = [] { return Masking({.mask_value = -1}); },
                        .input = {{3, 4, 2}},
                        .output = {3, 4, 2},
                        .config = {{"mask_value", -1.0}}});
}

TEST_CASE("Masking masks the steps whose features all equal the value") {
  const at::Tensor x = at::tensor({7.f, 7.f, 7.f, 1.f, 2.f, 3.f}).reshape({1, 3, 2});
  const DTensor y = Masking({.mask_value = 7})(pack(x, Layout::replicated(default_mesh(), 3)));
  const at::Tensor expected = at::tensor({0.f, 0.f, 7.f, 1.f, 2.f, 3.f}).reshape({1, 3, 2});
  CHECK(difference(y.full(), expected) == "");
  CHECK(y.mask().full().equal(at::tensor({0, 1, 1}).to(at::kBool).reshape({1, 3})));
}

TEST_CASE("Masking takes every option by name and refuses invalid ones") {
  const LayerHandle layer =
      Masking({.mask_value = 2, .name = "m", .dtype = "float64", .trainable = false});
  CHECK(layer->config() ==
        Json{{"name", "m"}, {"trainable", false}, {"dtype", "float64"}, {"mask_value", 2.0}});
  CHECK_THROWS_WITH(layer(ones({3})), Contains("[Masking m]") && Contains("(3,)"));
}

}  // namespace masking_test
