#include <tessera/layers/preprocessing/normalization.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/data/tensor_dataset.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace normalization_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

Json config_of(const Json& axis, const Json& mean, const Json& variance, bool invert = false) {
  return {{"axis", axis}, {"mean", mean}, {"variance", variance}, {"invert", invert}};
}

DTensor replicated(const at::Tensor& tensor) {
  return pack(tensor, Layout::replicated(default_mesh(), tensor.dim()));
}

}  // namespace

TEST_CASE("Normalization under every layout") {
  test::run_layer_test({.make = [] { return Normalization(); },
                        .input = {{5, 4, 3}},
                        .output = {5, 4, 3},
                        .weights = {{"mean", {3}}, {"variance", {3}}, {"count", {}}},
                        .config = config_of({-1}, nullptr, nullptr)});
  test::run_layer_test({.make =
                            [] {
                              return Normalization({.axis = {3, 1}, .invert = true});
                            },
                        .input = {{2, 3, 2, 2}},
                        .output = {2, 3, 2, 2},
                        .weights = {{"mean", {3, 2}}, {"variance", {3, 2}}, {"count", {}}},
                        .config = config_of({3, 1}, nullptr, nullptr, true)});
  test::run_layer_test({.make = [] { return Normalization({.axis = {}}); },
                        .input = {{5, 3}},
                        .output = {5, 3},
                        .weights = {{"mean", {}}, {"variance", {}}, {"count", {}}},
                        .config = config_of(Json::array(), nullptr, nullptr)});
  const auto with_statistics = [] {
    return Normalization({.mean = {1, 2, 3}, .variance = {4, 5, 6}});
  };
  test::run_layer_test({.make = with_statistics,
                        .input = {{4, 3}},
                        .output = {4, 3},
                        .config = config_of({-1}, {1.0, 2.0, 3.0}, {4.0, 5.0, 6.0})});
}

TEST_CASE("Normalization learns equally from tensors and datasets, and adapt() starts over") {
  const at::Tensor x = at::randn({2500, 3}) * at::tensor({1.f, 20.f, 0.1f}) + 50;
  const Normalization layer;
  layer.adapt(at::zeros({4, 3}));
  layer.adapt(x);
  const at::Tensor y = layer(replicated(x)).full();
  CHECK(difference(y.mean(0), at::zeros(3), 0, 1e-4) == "");
  CHECK(difference(y.var(0, false), at::ones(3), 1e-4) == "");
  const Normalization other;
  other.adapt(TensorDataset(x, at::zeros(2500)));
  for (size_t w : {0, 1}) {
    CHECK(difference(other->weights()[w].value().full(), layer->weights()[w].value().full(),
                     1e-6) == "");
  }
  const Normalization inverse({.invert = true});
  inverse.adapt(x);
  CHECK(difference(inverse(replicated(y)).full(), x, 1e-5, 1e-3) == "");
}

TEST_CASE("Normalization takes every option by name and refuses invalid ones") {
  const Normalization layer({.axis = {1},
                             .mean = 1,
                             .variance = 4,
                             .invert = true,
                             .name = "n",
                             .dtype = "float64",
                             .trainable = false});
  CHECK(layer->config() == Json{{"name", "n"},
                                {"trainable", false},
                                {"dtype", "float64"},
                                {"axis", {1}},
                                {"mean", 1.0},
                                {"variance", 4.0},
                                {"invert", true}});
  CHECK_THROWS_WITH(layer.adapt(at::zeros({4, 3})), Contains("[Normalization n]"));
  CHECK_THROWS_WITH(Normalization({.mean = 1}), Contains("only mean"));
  CHECK_THROWS_WITH(Normalization({.mean = {1, 2}, .variance = {1, 2, 3}}),
                    Contains("(2,) and (3,)"));
  CHECK_THROWS_WITH(Normalization({.axis = {}, .mean = {1, 2}, .variance = {1, 2}}),
                    Contains("at most 0 axes"));
  CHECK_THROWS_WITH(Normalization({.mean = {1, 2}, .variance = {1, 2}})->build({{4, 3}}),
                    Contains("axis 1 has 2 indices") && Contains("(4, 3)"));
  CHECK_THROWS_WITH(Normalization({.axis = {2}})->build({{4, 3}}),
                    Contains("[Normalization]") || Contains("normalization"));
  CHECK_THROWS_WITH(Normalization({.axis = {1, -1}})->build({{4, 3}}), Contains("once"));
  CHECK_THROWS_WITH(Normalization()->build({{4, -1}}), Contains("known extent"));
  const Normalization learned;
  CHECK_THROWS_WITH(learned.adapt(at::zeros({0, 3})), Contains("at least one row"));
  learned.adapt(at::zeros({4, 3}));
  CHECK_THROWS_WITH(learned.adapt(at::zeros({4, 2})), Contains("axis 1 has 3 indices"));
  CHECK_THROWS_WITH(learned(replicated(at::zeros({4, 2, 3}))), Contains("2 axes"));
}

}  // namespace normalization_test
