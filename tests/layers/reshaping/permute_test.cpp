#include <tessera/layers/reshaping/reshape.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace permute_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

test::LayerTest made(const Shape& input, const std::vector<int64_t>& dims, const Shape& output) {
  return {.make = [dims] { return Permute(dims); },
          .input = {input},
          .output = output,
          .config = {{"dims", dims}}};
}

}  // namespace

TEST_CASE("Permute under every layout") {
  test::run_layer_test(made({5, 3, 4}, {2, 1}, {5, 4, 3}));
  test::run_layer_test(made({3, 2, 5, 4}, {3, 1, 2}, {3, 4, 2, 5}));
  test::run_layer_test(made({6, 4}, {1}, {6, 4}));
}

TEST_CASE("Permute counts axes from 1, after the batch") {
  const at::Tensor x = at::arange(120).reshape({2, 3, 4, 5});
  const DTensor y = Permute({2, 3, 1})(pack(x, Layout::replicated(default_mesh(), 4)));
  CHECK(test::difference(y.full(), x.permute({0, 2, 3, 1}).contiguous()) == "");
}

TEST_CASE("Permute takes every option by name and refuses invalid ones") {
  const LayerHandle layer = Permute({2, 1}, {.name = "p", .dtype = "float64", .trainable = false});
  CHECK(layer->config() ==
        Json{{"name", "p"}, {"trainable", false}, {"dtype", "float64"}, {"dims", {2, 1}}});
  CHECK_THROWS_WITH(Permute({0, 1}), Contains("[Permute]") && Contains("(0, 1)"));
  CHECK_THROWS_AS(Permute({1, 1}), ConfigError);
  CHECK_THROWS_AS(Permute({1, 3}), ConfigError);
  CHECK_THROWS_WITH(layer->build({{4, 7}}),
                    Contains("[Permute p]") && Contains("3 axes") && Contains("(4, 7)"));
}

}  // namespace permute_test
