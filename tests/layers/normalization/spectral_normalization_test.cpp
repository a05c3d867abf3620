#include <tessera/layers/normalization/spectral_normalization.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/activation/activation.hpp>
#include <tessera/layers/convolutional/conv.hpp>
#include <tessera/layers/core/dense.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace spectral_normalization_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// Compares a call in training with Keras': output, gradients, and the weights that it assigns.
void check_training(const Json& golden, const LayerHandle& layer, const DTensor& x) {
  GradientTape tape;
  tape.watch(x);
  const DTensor y = layer(x, {.training = true});
  CHECK(unlike(y.full(), golden.at("output")) == "");
  std::vector<DTensor> sources = {x};
  for (const Variable& weight : layer->trainable_weights()) sources.push_back(weight.value());
  const DTensor dy = pack(upstream(y.full()), fetch_layout(y));
  const std::vector<DTensor> gradients = tape.gradient(y, sources, {.output_gradient = dy});
  REQUIRE(gradients.size() == golden.at("gradients").size());
  for (size_t g = 0; g < gradients.size(); ++g) {
    CAPTURE(g);
    CHECK(unlike(gradients[g].full(), golden.at("gradients")[g]) == "");
  }
  const std::vector<Variable> weights = layer->weights();
  REQUIRE(weights.size() == golden.at("after").size());
  for (size_t w = 0; w < weights.size(); ++w) {
    CAPTURE(weights[w].path());
    CHECK(unlike(weights[w].value().full(), golden.at("after")[w]) == "");
  }
}

at::Tensor value(const LayerHandle& layer, size_t weight) {
  return layer->weights()[weight].value().full().clone();
}

}  // namespace

TEST_CASE("outside training, SpectralNormalization is the layer, as in Keras") {
  check_layers(golden_part("keras_small_layers.json", "SpectralNormalization"));
}

TEST_CASE("in training, SpectralNormalization assigns Keras' kernel in any layout of the kernel") {
  for (const Json& golden :
       golden_part("keras_small_layers.json", "SpectralNormalization in training")) {
    const at::Tensor x = input_tensors(golden.at("inputs"))[0];
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {2}, {2, 2}}) {
      const Mesh mesh = virtual_mesh(sizes);
      const DTensor in = pack(x, Layout::replicated(mesh, x.dim()));
      const auto rank = static_cast<int64_t>(layer_of(golden, {in})->weights()[0].shape().size());
      for (const Layout& layout : layouts_of(mesh, rank, {})) {
        CAPTURE(golden.at("layer").dump(), short_name({layout}));
        const LayerHandle layer = layer_of(golden, {in});
        Variable kernel = layer->weights()[0];
        kernel.place({kernel.shape(), layout});
        check_training(golden, layer, in);
      }
    }
  }
}

TEST_CASE("a step may call SpectralNormalization several times") {
  const LayerHandle layer = SpectralNormalization(Dense(3, {.use_bias = false, .dtype = "float64"}),
                                                  {.dtype = "float64"});
  const at::Tensor a = random_values({{2, 4}}, 1), b = random_values({{5, 4}}, 2);
  const DTensor real = on_one_device(a), made = on_one_device(b);
  layer->build({{-1, 4}});
  GradientTape tape;
  tape.watch(real);
  const DTensor of_real = ops::sum(layer(real, {.training = true}));
  const at::Tensor first = value(layer, 0);
  const DTensor of_made = ops::sum(layer(made, {.training = true}));
  const at::Tensor second = value(layer, 0);
  CHECK(difference(second, first) != "");
  const std::vector<DTensor> gradients =
      tape.gradient(of_real + of_made, {real, layer->weights()[0].value()});
  // Each call's gradients are those of its own kernel.
  CHECK(difference(gradients[0].full(), first.sum(1).expand({2, 4}), 1e-12, 1e-12) == "");
  const at::Tensor sums = (a.sum(0) + b.sum(0)).unsqueeze(1).expand({4, 3});
  CHECK(difference(gradients[1].full(), sums, 1e-12, 1e-12) == "");
}

TEST_CASE("power iterations lead to a kernel of spectral norm 1") {
  const LayerHandle layer = SpectralNormalization(Conv2D(4, 2, {.dtype = "float64"}),
                                                  {.power_iterations = 200, .dtype = "float64"});
  layer(on_one_device(random_values({{1, 3, 3, 2}}, 1)), {.training = true});
  const at::Tensor matrix = value(layer, 0).reshape({-1, 4});
  CHECK(at::linalg_matrix_norm(matrix, 2).item<double>() == Approx(1).epsilon(1e-6));
}

TEST_CASE("SpectralNormalization leaves a kernel of zeros, and all weights outside training") {
  const LayerHandle zeros = SpectralNormalization(Dense(3, {.kernel_initializer = "zeros"}));
  const DTensor x = on_one_device(at::ones({2, 4}));
  zeros(x);
  const at::Tensor u = value(zeros, 1);
  zeros(x, {.training = true});
  CHECK(at::equal(value(zeros, 0), at::zeros({4, 3})));
  CHECK(at::equal(value(zeros, 1), u));
  const LayerHandle layer = SpectralNormalization(Dense(3));
  layer(x);
  const at::Tensor kernel = value(layer, 0);
  layer(x);
  CHECK(at::equal(value(layer, 0), kernel));
  CHECK(layer->weights()[0].path().ends_with("/dense/kernel"));
  CHECK(layer->weights()[1].path().ends_with("/vector_u"));
  CHECK(layer->trainable_weights().size() == 2);
}

TEST_CASE(
    "SpectralNormalization is read from its configuration, and refuses layers without kernel") {
  const LayerHandle layer =
      SpectralNormalization(Dense(3, {.name = "inner"}), {.power_iterations = 2, .name = "outer"});
  const Json json = layer->config();
  CHECK(json.at("power_iterations") == 2);
  CHECK(json.at("layer").at("class_name") == "Dense");
  const LayerHandle again = layer_from_config(layer_json(*layer.layer()), JsonPath("layer"));
  CHECK(again->config() == json);
  CHECK_THAT(error_line([] { SpectralNormalization(Dense(3), {.power_iterations = 0}); }),
             Contains("power_iterations is at least 1. Received: 0"));
  CHECK_THAT(error_line([] {
               const LayerHandle relu = SpectralNormalization(ReLU(ReLUOptions{}));
               relu(ones({2, 3}));
             }),
             Contains("\"kernel\" or \"embeddings\". Received: ReLU"));
}

}  // namespace spectral_normalization_test
