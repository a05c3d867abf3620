#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/weights_file.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/keras_layers.hpp"

/// Dense, EinsumDense and embeddings with adapters (LoRA) against Keras.
namespace keras_lora_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

const char* const file = "keras_lora.json";

/// A model of one layer, called on inputs of these shapes.
class OneLayer final : public Model {
 public:
  explicit OneLayer(LayerHandle layer) : layer_(track("layer", layer)) {}
  std::string class_name() const override { return "OneLayer"; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override { return layer_(inputs); }

 private:
  LayerHandle layer_;
};

/// Returns the values with the layer's own weights' order and dtypes, without factors.
void check_stored(const Json& golden, const LayerHandle& layer) {
  std::vector<Variable> stored = layer->own_weights();
  std::erase_if(stored, [](const Variable& weight) {
    return weight.path().find("/lora_") != std::string::npos;
  });
  REQUIRE(stored.size() == golden.at("stored").size());
  for (size_t w = 0; w < stored.size(); ++w) {
    CAPTURE(stored[w].path());
    CHECK(unlike(stored[w].value().full(), golden.at("stored")[w]) == "");
  }
}

}  // namespace

TEST_CASE("layers with adapters match Keras in every layout of kernel and factors") {
  for (const char* const kind : {"Dense", "EinsumDense", "Embedding", "ReversibleEmbedding"}) {
    check_layers(golden_part(file, kind));
  }
}

TEST_CASE("int8 layers with adapters match Keras in every layout of kernel and factors") {
  check_layers(golden_part(file, "int8"));
}

TEST_CASE("merge_lora and files have the kernels that Keras stores") {
  for (const char* const kind :
       {"Dense", "EinsumDense", "Embedding", "ReversibleEmbedding", "int8"}) {
    for (const Json& golden : golden_part(file, kind)) {
      CAPTURE(golden.at("layer").dump());
      Inputs inputs;
      for (const at::Tensor& input : input_tensors(golden.at("inputs"))) {
        inputs.push_back(on_one_device(input));
      }
      const LayerHandle layer = layer_of(golden, inputs);
      const at::Tensor expected = layer(inputs).full();
      const TempFolder folder;
      const std::string path = (folder / "a.weights.h5").string();
      OneLayer model(layer);
      model(inputs);
      model.save_weights(path);
      // The file has the product; B is 0 after loading it.
      model.load_weights(path);
      const at::Tensor loaded = layer(inputs).full();
      check_stored(golden, layer);
      const std::vector<Variable> weights = layer->own_weights();
      for (const Variable& weight : weights) {
        if (!weight.path().ends_with("_b")) continue;
        CHECK(weight.value().full().abs().sum().item<double>() == 0);
      }
      // Integers are rounded again.
      const double tolerance = std::string(kind) == "int8" ? 0.2 : 1e-5;
      CHECK(difference(loaded, expected, tolerance, tolerance) == "");

      const LayerHandle merged = layer_of(golden, inputs);
      merged->merge_lora();
      CHECK_FALSE(merged->has_lora());
      check_stored(golden, merged);
      CHECK_FALSE(merged->config().contains("lora_rank"));
      CHECK(merged->own_weights()[0].trainable() == !merged->is_quantized());
      CHECK(difference(merged(inputs).full(), loaded, 1e-5, 1e-5) == "");
    }
  }
}

TEST_CASE("alpha survives a configuration, as Keras' EinsumDense keeps it") {
  const Json& keras = golden_part(file, "alpha")[0];
  const auto alpha_after = [](const LayerHandle& layer, const Shape& shape) {
    layer->build({shape});
    layer->enable_lora(2, {.alpha = 8});
    const Json config = {{"class_name", layer->class_name()}, {"config", layer->config()}};
    const LayerHandle again = layer_from_config(config, JsonPath("layer.json"));
    again->build({shape});
    CHECK(again->has_lora());
    return again->config().at("lora_alpha");
  };
  CHECK(keras.at("EinsumDense") == 8);
  CHECK(alpha_after(EinsumDense("ab,bc->ac", {3}), {4, 5}) == 8);
  // Keras' own build() takes the rank.
  CHECK(keras.at("Dense") == 2);
  CHECK(alpha_after(Dense(3), {4, 5}) == 8);
  CHECK(keras.at("Embedding") == 2);
  CHECK(alpha_after(Embedding(6, 4), {5}) == 8);
}

TEST_CASE("a new adapter changes no output, and is trained in the kernel's place") {
  const LayerHandle layer = Dense(3, {.kernel_regularizer = "l2", .name = "d"});
  const at::Tensor x = at::rand({4, 5});
  const at::Tensor before = layer(x).full();
  layer->enable_lora(2);
  CHECK(difference(layer(x).full(), before, 1e-6, 1e-6) == "");
  std::vector<std::string> paths, trained;
  for (const Variable& weight : layer->weights()) paths.push_back(weight.path());
  for (const Variable& weight : layer->trainable_weights()) trained.push_back(weight.path());
  CHECK(paths ==
        std::vector<std::string>{"d/kernel", "d/bias", "d/lora_kernel_a", "d/lora_kernel_b"});
  CHECK(trained == std::vector<std::string>{"d/bias", "d/lora_kernel_a", "d/lora_kernel_b"});
  CHECK(layer->losses().size() == 2);
  // he_uniform: within sqrt(6 / 5) of 0.
  const at::Tensor a = layer->own_weights()[2].value().full();
  CHECK(a.abs().max().item<double>() <= std::sqrt(6.0 / 5));
  CHECK(a.abs().max().item<double>() > 0.3);
  layer->set_trainable(false);
  CHECK(layer->trainable_weights().empty());
  layer->set_trainable(true);
  CHECK(layer->trainable_weights().size() == 3);
  layer->merge_lora();
  CHECK(layer->trainable_weights().size() == 2);
  layer->enable_lora(1, {.alpha = 0.5});
  CHECK(layer->config().at("lora_alpha") == 0.5);
}

TEST_CASE("factors are float32, and computed with in the compute dtype") {
  const LayerHandle layer = Dense(3, {.name = "d", .dtype = "bfloat16"});
  layer->build({{4, 5}});
  layer->enable_lora(2, {.b_initializer = "ones"});
  CHECK(layer->own_weights()[0].dtype() == at::kBFloat16);
  CHECK(layer->own_weights()[2].dtype() == at::kFloat);
  CHECK(layer(at::rand({4, 5})).dtype() == at::kBFloat16);
}

TEST_CASE("a layer that cannot have an adapter says why") {
  const LayerHandle unbuilt = Dense(3, {.name = "d"});
  CHECK_THROWS_WITH(unbuilt->enable_lora(2), Contains("[Dense d]") && Contains("built before"));
  unbuilt->build({{2, 4}});
  CHECK_THROWS_WITH(unbuilt->enable_lora(0), Contains("at least 1"));
  CHECK_FALSE(unbuilt->has_lora());
  unbuilt->enable_lora(2);
  CHECK_THROWS_WITH(unbuilt->enable_lora(2), Contains("one adapter") && Contains("rank 2"));

  const LayerHandle bounded = Dense(3, {.kernel_constraint = "non_neg", .name = "n"});
  bounded->build({{2, 4}});
  CHECK_THROWS_WITH(bounded->enable_lora(2), Contains("\"n/kernel\"") && Contains("constraint"));
  const LayerHandle conv = Conv2D(2, {3, 3}, {.name = "c"});
  conv->build({{1, 5, 5, 2}});
  CHECK_THROWS_WITH(conv->enable_lora(2), Contains("[Conv2D c]") && Contains("EinsumDense"));
  const LayerHandle odd = EinsumDense("abc,dc->abd", {-1, 4}, {.name = "e"});
  odd->build({{2, 3, 5}});
  CHECK_THROWS_WITH(odd->enable_lora(2, {.as_matrix = true}),
                    Contains("[EinsumDense e]") && Contains("as_matrix"));
  odd->enable_lora(2);

  const auto from = [](const char* text) {
    return layer_from_config(parse_json(text, "t"), JsonPath("layer.json"));
  };
  CHECK_THROWS_WITH(from(R"({"class_name": "Dense", "config": {"units": 3, "lora_rank": -1}})"),
                    Contains("config.lora_rank") && Contains("1 to 2147483647"));
  CHECK_FALSE(from(R"({"class_name": "Dense", "config": {"units": 3, "lora_rank": null}})")
                  ->config()
                  .contains("lora_rank"));
  const LayerHandle both = from(
      R"({"class_name": "Dense", "config": {"units": 3, "lora_rank": 2,
          "kernel_constraint": {"class_name": "NonNeg", "config": {}}}})");
  CHECK_THROWS_WITH(both->build({{2, 4}}), Contains("constraint") && Contains("lora_rank"));
}

TEST_CASE("an int8 kernel has an adapter for any equation, also with dots") {
  const at::Tensor x = at::rand({3, 2, 5}) - 0.5;
  for (const auto& [equation, shape] : std::vector<std::pair<std::string, Shape>>{
           {"abc,cd->adb", {4, 2}}, {"abc,dc->abd", {2, 4}}, {"...c,cd->...d", {4}}}) {
    CAPTURE(equation);
    const LayerHandle layer = EinsumDense(equation, shape, {.name = "e"});
    layer->build({{3, 2, 5}});
    layer->enable_lora(2, {.alpha = 3, .b_initializer = "ones"});
    const at::Tensor floating = layer(x).full();
    layer->quantize("int8");
    const at::Tensor quantized = layer(x).full();
    CHECK(difference(quantized, floating, 0, 0.05) == "");
    layer->merge_lora();
    CHECK(difference(layer(x).full(), quantized, 0, 0.05) == "");
  }
}

TEST_CASE("reverse of a tied embedding uses the table with its adapter") {
  const ReversibleEmbedding words(6, 3, {.name = "words"});
  words->build({{4}});
  words->enable_lora(2, {.alpha = 3, .b_initializer = "ones"});
  const DTensor vectors = on_one_device(at::rand({4, 3}));
  const at::Tensor before = words.reverse(vectors).full();
  const at::Tensor table = words->own_weights()[0].value().full();
  CHECK(difference(before, at::matmul(vectors.full(), table.t()), 1e-4, 1e-4) != "");
  words->merge_lora();
  CHECK(difference(words.reverse(vectors).full(), before, 1e-5, 1e-5) == "");
}

}  // namespace keras_lora_test
