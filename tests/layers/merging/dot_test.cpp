#include <tessera/layers/merging/merge.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace dot_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

test::LayerTest made(DotAxes axes, bool normalize, const Json& axes_json, const Shape& first,
                     const Shape& second, const Shape& output) {
  return {.make = [=] { return Dot(axes, {.normalize = normalize}); },
          .input = {first},
          .output = output,
          .config = {{"axes", axes_json}, {"normalize", normalize}},
          .more_inputs = {{second}}};
}

}  // namespace

TEST_CASE("Dot under every layout") {
  test::run_layer_test(made(1, false, 1, {3, 5}, {3, 5}, {3, 1}));
  test::run_layer_test(made(2, false, 2, {4, 2, 5}, {4, 3, 5}, {4, 2, 3}));
  test::run_layer_test(made({-2, 2}, true, {-2, 2}, {3, 5, 2}, {3, 4, 5}, {3, 2, 4}));
  test::run_layer_test(made({1, 3}, false, {1, 3}, {2, 3}, {2, 2, 2, 3}, {2, 2, 2}));
}

TEST_CASE("Dot of vectors with one element") {
  const at::Tensor a = at::tensor({3.f, 4.f, 0.f, 0.f}).reshape({2, 2});
  const at::Tensor b = at::tensor({4.f, 3.f, 1.f, 1.f}).reshape({2, 2});
  const Layout layout = Layout::replicated(default_mesh(), 2);
  const DTensor y = Dot(1, {.normalize = true})({pack(a, layout), pack(b, layout)});
  CHECK(test::difference(y.full(), at::tensor({0.96f, 0.f}).reshape({2, 1}), 1e-6) == "");
}

TEST_CASE("Dot takes every option by name and refuses invalid ones") {
  const LayerHandle layer =
      Dot({1, 2}, {.normalize = true, .name = "d", .dtype = "float64", .trainable = false});
  CHECK(layer->config() == Json{{"name", "d"},
                                {"trainable", false},
                                {"dtype", "float64"},
                                {"axes", {1, 2}},
                                {"normalize", true}});
  CHECK(layer->output_shape({{-1, 3, 2}, {4, 5, 3}}) == Shape{4, 2, 5});
  CHECK_THROWS_WITH(layer->build({{4, 3, 2}, {4, 5, 2}}),
                    Contains("[Dot d]") && Contains("(4, 3, 2) and (4, 5, 2)"));
  CHECK_THROWS_WITH(layer->build({{4, 3, 2}, {5, 5, 3}}), Contains("batches are equal"));
  CHECK_THROWS_WITH(layer->build({{4, 3, 2}}), Contains("two inputs"));
  CHECK_THROWS_WITH(layer->build({{4, 3, 2}, {4, 5}}), Contains("[Dot d]"));
  CHECK_THROWS_WITH(Dot(0)->build({{4, 3}, {4, 3}}), Contains("after the batch"));
}

}  // namespace dot_test
