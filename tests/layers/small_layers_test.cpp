#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace small_layers_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::difference;

TEST_CASE("activations as layers under every layout") {
  test::run_layer_test(
      {.make = [] { return ReLU({.max_value = 0.8, .negative_slope = 0.1, .threshold = 0.2}); },
       .input = {{5, 4}},
       .output = {5, 4},
       .config = {{"max_value", 0.8}, {"negative_slope", 0.1}, {"threshold", 0.2}}});
  test::run_layer_test({.make = [] { return LeakyReLU(); },
                        .input = {{5, 4}},
                        .output = {5, 4},
                        .config = {{"negative_slope", 0.3}}});
  test::run_layer_test({.make = [] { return ELU({.alpha = 0.5}); },
                        .input = {{3, 2, 3}},
                        .output = {3, 2, 3},
                        .config = {{"alpha", 0.5}}});
  test::run_layer_test({.make = [] { return Softmax({.axis = {1, 2}}); },
                        .input = {{3, 2, 3}},
                        .output = {3, 2, 3},
                        .config = {{"axis", {1, 2}}}});
  test::run_layer_test({.make = [] { return Identity(); }, .input = {{3, 2}}, .output = {3, 2}});
}

TEST_CASE("PReLU under every layout of inputs and slopes") {
  test::run_layer_test({.make = [] {
                          return PReLU({.alpha_initializer = "he_normal",
                                        .alpha_regularizer = "l2",
                                        .shared_axes = {1}});
                        },
                        .input = {{4, 3, 5}},
                        .output = {4, 3, 5},
                        .weights = {{"alpha", {1, 5}}},
                        .config = {{"alpha_initializer",
                                    {{"class_name", "HeNormal"}, {"config", {{"seed", nullptr}}}}},
                                   {"alpha_regularizer",
                                    {{"class_name", "L2"}, {"config", {{"l2", 0.01}}}}},
                                   {"alpha_constraint", nullptr},
                                   {"shared_axes", {1}}}});
  const LayerHandle layer = PReLU({.name = "p"});
  layer->build({{-1, 3, 4}});
  CHECK_THROWS_WITH(layer->output_shape({{2, 3, 5}}),
                    Contains("[PReLU p]") && Contains("(3, 4)") && Contains("(2, 3, 5)"));
  CHECK_THROWS_WITH(PReLU({.name = "p"})->build({{-1, -1, 4}}), Contains("Received: (-1, -1, 4)"));
  CHECK_THROWS_WITH(PReLU({.name = "p"})->build({{4}}), Contains("Received: (4,)"));
  CHECK_THROWS_WITH(PReLU({.shared_axes = {2}, .name = "p"})->build({{4, 3}}),
                    Contains("[PReLU p]") && Contains("axis 2"));
  CHECK_THROWS_WITH(PReLU({.shared_axes = {0}, .name = "p"}),
                    Contains("[PReLU p]") && Contains("Received: (0,)"));
  PReLU({.shared_axes = {1}})->build({{-1, -1, 4}});
}

TEST_CASE("layers that penalize and normalize, under every layout") {
  test::run_layer_test({.make = [] { return ActivityRegularization({.l1 = 0.1, .l2 = 0.2}); },
                        .input = {{5, 4}},
                        .output = {5, 4},
                        .config = {{"l1", 0.1}, {"l2", 0.2}}});
  test::run_layer_test({.make = [] { return UnitNormalization({.axis = {-1, 1}}); },
                        .input = {{5, 4, 3}},
                        .output = {5, 4, 3},
                        .config = {{"axis", {-1, 1}}}});
  const DTensor zero = UnitNormalization()(zeros({2, 3}));
  CHECK(difference(zero.full(), at::zeros({2, 3})) == "");
}

TEST_CASE("Softmax leaves out what a mask does, as a second input of any dtype or with the value") {
  const DTensor x = pack(at::randn({3, 4}), Layout::replicated(default_mesh(), 2));
  const at::Tensor bits = at::tensor({1, 0, 1, 1}).to(at::kBool);
  const at::Tensor expected = at::softmax(
      x.full().masked_fill(bits.logical_not(), -std::numeric_limits<float>::infinity()), -1);
  for (const at::ScalarType dtype : {at::kBool, at::kInt, at::kFloat}) {
    const DTensor mask = pack(bits.to(dtype), Layout::replicated(default_mesh(), 1));
    CHECK(difference(Softmax()({x, mask}).full(), expected, 1e-6) == "");
  }
  const DTensor with = x.with_mask(
      pack(bits.expand({3, 4}).contiguous(), Layout::replicated(default_mesh(), 2)));
  CHECK(difference(Softmax()(with).full(), expected, 1e-6) == "");
  CHECK(Softmax()(with).mask().defined());
}

TEST_CASE("small layers refuse what does not fit, by name") {
  CHECK_THROWS_WITH(ReLU({.max_value = -1, .name = "r"}),
                    Contains("[ReLU r] max_value") && Contains("Received: -1"));
  CHECK_THROWS_WITH(ReLU({.negative_slope = -0.5, .name = "r"}), Contains("negative_slope"));
  CHECK_THROWS_WITH(ReLU({.threshold = -2, .name = "r"}), Contains("threshold"));
  CHECK_THROWS_WITH(LeakyReLU({.negative_slope = -1, .name = "r"}),
                    Contains("[LeakyReLU r]") && Contains("Received: -1"));
  CHECK_THROWS_WITH(Softmax({.axis = {}}), Contains("at least one axis"));
  CHECK_THROWS_WITH(Softmax({.axis = {2}, .name = "s"})->build({{3, 4}}),
                    Contains("[Softmax s]") && Contains("2"));
  CHECK_THROWS_WITH(Softmax({.name = "s"})({ones({3, 4}), ones({3})}),
                    Contains("[Softmax s]") && Contains("(3, 4)") && Contains("Received: (3,)"));
  CHECK_THROWS_WITH(UnitNormalization({.axis = {-3}, .name = "u"})->build({{3, 4}}),
                    Contains("[UnitNormalization u]"));
  CHECK_THROWS_WITH(UnitNormalization({.axis = {}}), Contains("at least one axis"));
  CHECK_THROWS_WITH(ActivityRegularization({.l1 = -1, .name = "a"}),
                    Contains("[ActivityRegularization a") && Contains("-1"));
}

}  // namespace small_layers_test
