#include <tessera/layers/regularization/dropout.hpp>

#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/random_layer_check.hpp"

namespace dropout_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;
using test::training_step;

TEST_CASE("Dropout under every layout") {
  test::run_layer_test({.make = [] { return Dropout(0.4); },
                        .input = {{6, 5}},
                        .output = {6, 5},
                        .config = {{"rate", 0.4}, {"seed", nullptr}, {"noise_shape", nullptr}}});
  test::run_layer_test({.make = [] { return Dropout(0.0, {.seed = 3}); },
                        .input = {{3, 2, 2}},
                        .output = {3, 2, 2},
                        .config = {{"rate", 0.0}, {"seed", 3}, {"noise_shape", nullptr}}});
}

TEST_CASE("Dropout with a noise shape") {
  const auto make = [] { return Dropout(0.5, {.noise_shape = {-1, 1, 3}, .seed = 2}); };
  test::run_layer_test({.make = make,
                        .input = {{4, 5, 3}},
                        .output = {4, 5, 3},
                        .config = {{"rate", 0.5}, {"seed", 2}, {"noise_shape", {nullptr, 1, 3}}}});
  const at::Tensor y = make()(ones({40, 5, 3}), training_step(0)).full();
  CHECK(difference(y, y.slice(1, 0, 1).expand({40, 5, 3}).contiguous()) == "");
  CHECK(y.mean().item<double>() == Approx(1).margin(0.3));
  CHECK(y.slice(1, 0, 1).eq(0).any().item<bool>());
  CHECK(y.eq(0).logical_or(y.eq(2)).all().item<bool>());
  CHECK_THROWS_WITH(make()->build({{4, 5, 2}}), Contains("(-1, 1, 3)") && Contains("(4, 5, 2)"));
  CHECK_THROWS_WITH(make()->build({{4, 5}}), Contains("(4, 5)"));
  CHECK_THROWS_WITH(Dropout(0.5, {.noise_shape = {0}}), Contains("(0,)"));
}

TEST_CASE("Dropout drops its rate of elements and scales the rest, in training only") {
  const LayerHandle layer = Dropout(0.25);
  const DTensor x = ones({400, 100});
  const at::Tensor y = layer(x, training_step(0)).full();
  const at::Tensor kept = y.ne(0);
  CHECK(std::abs(kept.to(at::kDouble).mean().item<double>() - 0.75) < 0.01);
  CHECK(difference(y, kept.to(at::kFloat) / 0.75, 1e-6) == "");
  CHECK(difference(layer(x).full(), x.full()) == "");
}

TEST_CASE("Dropout draws differently in each step and call, deterministically") {
  const auto drop = [](const LayerHandle& layer, const CallContext& context) {
    return layer(ones({64, 8}), context).full();
  };
  const auto equal = [](const at::Tensor& a, const at::Tensor& b) { return a.equal(b); };
  const LayerHandle a = Dropout(0.5, {.name = "a"}), b = Dropout(0.5, {.name = "b"});
  const at::Tensor first = drop(a, training_step(0));
  CHECK(equal(first, drop(a, training_step(0))));
  CHECK_FALSE(equal(first, drop(a, training_step(1))));
  CHECK_FALSE(equal(first, drop(a, training_step(0, 2))));
  CHECK_FALSE(equal(first, drop(b, training_step(0))));
  const CallContext twice = training_step(0);
  CHECK(equal(first, drop(a, twice)));
  CHECK_FALSE(equal(first, drop(a, twice)));
  const LayerHandle seeded = Dropout(0.5, {.seed = 3, .name = "a"});
  CHECK_FALSE(equal(first, drop(seeded, training_step(0))));
}

TEST_CASE("Dropout takes every option by name and refuses invalid rates") {
  const LayerHandle layer =
      Dropout(0.5, {.seed = 7, .name = "drop", .dtype = "float64", .trainable = false});
  CHECK(layer->config() == Json{{"name", "drop"},
                                {"trainable", false},
                                {"dtype", "float64"},
                                {"rate", 0.5},
                                {"seed", 7},
                                {"noise_shape", nullptr}});
  for (const double rate : {-0.1, 1.0, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_WITH(Dropout(rate, {.name = "drop"}),
                      Contains("[Dropout drop]") && Contains("Received: "));
  }
  CHECK_THROWS_WITH(layer->build({{2}, {2}}),
                    Contains("[Dropout drop]") && Contains("Received: 2 inputs"));
}

}  // namespace dropout_test
