#include <tessera/layers/activation/activation.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/convolutional/conv.hpp>
#include <tessera/layers/core/dense.hpp>
#include <tessera/layers/core/einsum_dense.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layer_check.hpp"

namespace activation_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

TEST_CASE("every activation under every layout") {
  for (const std::string& name : activation_names()) {
    CAPTURE(name);
    test::run_layer_test({.make = [&] { return Activation(name); },
                          .input = {{5, 4}},
                          .output = {5, name == "glu" ? 2 : 4},
                          .config = {{"activation", name}}});
  }
}

TEST_CASE("hard_sigmoid of Keras 2 and gelu by tanh under every layout") {
  for (const OwnActivation& own : own_activations) {
    CAPTURE(own.name);
    const Json function = {{"module", "builtins"},
                           {"class_name", "function"},
                           {"config", own.name},
                           {"registered_name", "function"}};
    test::run_layer_test({.make = [&] { return Activation(own.name); },
                          .input = {{5, 4}},
                          .output = {5, 4},
                          .config = {{"activation", function}}});
  }
  const DTensor x =
      pack(at::linspace(-4, 4, 9, at::kDouble), Layout::replicated(default_mesh(), 1));
  const ActivationHandle hard(keras_2_hard_sigmoid);
  CHECK(at::allclose(hard(x).full(), (x.full() * 0.2 + 0.5).clamp(0, 1), 0, 1e-15));
  const ActivationHandle smooth(approximate_gelu);
  CHECK(at::allclose(smooth(x).full(), at::gelu(x.full(), "tanh"), 0, 1e-15));
}

TEST_CASE("glu halves the features of a dense layer too") {
  const LayerHandle layer = Dense(6, {.activation = "glu"});
  CHECK(layer(ones({2, 3})).shape() == Shape{2, 3});
  CHECK(layer->output_shape({{-1, 3}}) == Shape{-1, 3});
  CHECK_THROWS_WITH(
      Dense(3, {.activation = "glu"})(ones({2, 3})),
      Contains("[Dense dense, glu] axis -1 has an even extent") && Contains("Received: (2, 3)"));
}

TEST_CASE("glu halves the features of convolutions and EinsumDense") {
  const auto check = [](const LayerHandle& layer, const Shape& input, const Shape& output) {
    CAPTURE(layer->class_name());
    Shape unknown = output;
    unknown[0] = -1;
    Shape open = input;
    open[0] = -1;
    CHECK(layer->output_shape({open}) == unknown);
    CHECK(layer(ones(input)).shape() == output);
  };
  check(Conv2D(6, 3, {.activation = "glu"}), {2, 5, 5, 1}, {2, 3, 3, 3});
  check(DepthwiseConv2D(3, {.activation = "glu"}), {2, 5, 5, 4}, {2, 3, 3, 2});
  check(SeparableConv2D(6, 3, {.activation = "glu"}), {2, 5, 5, 1}, {2, 3, 3, 3});
  check(Conv2DTranspose(6, 3, {.activation = "glu"}), {2, 5, 5, 1}, {2, 7, 7, 3});
  check(EinsumDense("ab,bc->ac", {6}, {.activation = "glu"}), {2, 5}, {2, 3});
  check(Conv2D(3, 3, {.data_format = "channels_first", .activation = "glu"}), {2, 1, 5, 6},
        {2, 3, 3, 2});
}

TEST_CASE("a convolution's softmax is over the last axis, also with channels first") {
  const Conv1D layer(4, 2,
                     {.data_format = "channels_first",
                      .activation = "softmax",
                      .kernel_initializer = GlorotUniform({.seed = 1})});
  const at::Tensor y = layer(stateless_uniform({2, 3, 6}, {1, 2})).full();
  CHECK(y.sizes() == at::IntArrayRef({2, 4, 5}));
  CHECK(at::allclose(y.sum(-1), at::ones({2, 4})));
}

TEST_CASE("an activation may be a user-defined function") {
  const Activation twice([](const DTensor& x) { return x + x; });
  CHECK(twice(ones({1})).item() == 2);
  CHECK(twice->config().at("activation") == "custom");
}

TEST_CASE("Activation takes every option by name and refuses unknown functions") {
  const LayerHandle layer =
      Activation("relu", {.name = "act", .dtype = "float64", .trainable = false});
  CHECK(layer->config() ==
        Json{{"name", "act"}, {"trainable", false}, {"dtype", "float64"}, {"activation", "relu"}});
  CHECK_THROWS_WITH(Activation("sofmax"), Contains("\"sofmax\"") && Contains("\"softmax\""));
  CHECK_THROWS_WITH(layer->build({{2}, {2}}),
                    Contains("[Activation act]") && Contains("Received: 2 inputs"));
}

}  // namespace activation_test
