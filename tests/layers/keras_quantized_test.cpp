#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

/// Dense, EinsumDense and Embedding with int8 kernels against Keras.
namespace keras_quantized_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

const char* const file = "keras_quantized.json";

/// Returns the floating layer with Keras' weights, on a mesh.
LayerHandle floating_layer(const Json& golden, const Mesh& mesh) {
  Inputs inputs;
  for (const at::Tensor& input : input_tensors(golden.at("inputs"))) {
    inputs.push_back(pack(input, Layout::replicated(mesh, input.dim())));
  }
  return layer_of(golden.at("floating"), inputs);
}

/// Quantizes the layer and compares its weights with Keras', bit for bit.
void check_quantized(const Json& golden, const LayerHandle& layer) {
  layer->quantize("int8");
  const std::vector<Variable> weights = layer->weights();
  REQUIRE(weights.size() == golden.at("weights").size());
  for (size_t w = 0; w < weights.size(); ++w) {
    CAPTURE(weights[w].path());
    const at::Tensor value = weights[w].value().full();
    CHECK(at::equal(value, golden_tensor(golden.at("weights")[w], value.scalar_type())));
  }
}

}  // namespace

TEST_CASE("quantized layers match Keras on every mesh") {
  for (const char* const kind : {"Dense", "EinsumDense", "Embedding"}) {
    check_layers(golden_part(file, kind));
  }
}

TEST_CASE("quantize makes Keras' integers and scales in every layout of the kernel") {
  for (const char* const kind : {"Dense", "EinsumDense", "Embedding"}) {
    for (const Json& golden : golden_part(file, kind)) {
      CAPTURE(golden.at("layer").dump());
      check_quantized(golden, floating_layer(golden, default_mesh()));
      const Mesh mesh = virtual_mesh({2, 2});
      const auto rank = floating_layer(golden, mesh)->weights()[0].shape().size();
      for (const Layout& layout : all_layouts(mesh, static_cast<int64_t>(rank))) {
        const LayerHandle layer = floating_layer(golden, mesh);
        Variable kernel = layer->weights()[0];
        kernel.place({kernel.shape(), layout});
        check_quantized(golden, layer);
        CHECK(layer->own_weights()[0].layout() == layout);
      }
    }
  }
}

TEST_CASE("the integers are not trained, and biases are") {
  const LayerHandle layer = Dense(3, {.kernel_regularizer = "l2", .name = "d"});
  layer->build({{2, 4}});
  layer->quantize("int8");
  std::vector<std::string> paths, trained;
  for (const Variable& weight : layer->weights()) paths.push_back(weight.path());
  for (const Variable& weight : layer->trainable_weights()) trained.push_back(weight.path());
  CHECK(paths == std::vector<std::string>{"d/bias", "d/kernel", "d/kernel_scale"});
  CHECK(trained == std::vector<std::string>{"d/bias"});
  CHECK(layer->losses().empty());
  layer->set_trainable(false);
  layer->set_trainable(true);
  CHECK(layer->trainable_weights().size() == 1);
  CHECK(layer->config().at("dtype") == "int8_from_float32");
}

TEST_CASE("an EinsumDense with dots is quantized for inputs of any rank") {
  const LayerHandle layer = EinsumDense("...x,xy->...y", {3}, {.bias_axes = "y"});
  layer->build({{2, 2, 4}});
  layer->quantize("int8");
  const at::Tensor x = at::rand({2, 4}) - 0.5;
  const at::Tensor rows = layer(x).full();
  CHECK(at::equal(layer(x.view({1, 2, 4})).full(), rows.view({1, 2, 3})));
  CHECK(at::equal(layer(x.view({2, 1, 1, 4})).full(), rows.view({2, 1, 1, 3})));
}

TEST_CASE("a layer that cannot be quantized says why") {
  const LayerHandle unbuilt = Dense(3, {.name = "d"});
  CHECK_THROWS_WITH(unbuilt->quantize("int8"),
                    Contains("[Dense d]") && Contains("built before it is quantized"));
  unbuilt->build({{2, 4}});
  CHECK_THROWS_WITH(unbuilt->quantize("int4"), Contains("\"int8\"") && Contains("\"int4\""));
  CHECK_FALSE(unbuilt->is_quantized());
  unbuilt->quantize("int8");
  CHECK_THROWS_WITH(unbuilt->quantize("int8"), Contains("once") && Contains("int8_from_float32"));

  const LayerHandle conv = Conv2D(2, {3, 3}, {.name = "c"});
  conv->build({{1, 5, 5, 2}});
  CHECK_THROWS_WITH(conv->quantize("int8"), Contains("[Conv2D c]") && Contains("EinsumDense"));
  const LayerHandle half = Dense(3, {.dtype = "mixed_float16"});
  half->build({{2, 4}});
  CHECK_THROWS_WITH(half->quantize("int8"), Contains("mixed_float16"));

  CHECK_THROWS_WITH(Dense(3, {.dtype = "int4_from_float32"}), Contains("\"int4\""));
  const LayerHandle drop = Dropout(0.1, {.name = "o", .dtype = "int8_from_float32"});
  CHECK_THROWS_WITH(drop->build({{2, 3}}), Contains("[Dropout o]") && Contains("floating"));
}

TEST_CASE("only Keras' default quantization_config is read") {
  Json serialized = golden_part(file, "Dense")[0].at("layer");
  const JsonPath path("layer.json");
  CHECK(layer_from_config(serialized, path)->is_quantized());
  serialized["config"]["quantization_config"]["config"]["activation_quantizer"] = nullptr;
  CHECK_THROWS_WITH(layer_from_config(serialized, path),
                    Contains("config.quantization_config") && Contains("default of mode int8"));
  serialized["config"]["quantization_config"] = nullptr;
  CHECK(layer_from_config(serialized, path)->is_quantized());
}

}  // namespace keras_quantized_test
