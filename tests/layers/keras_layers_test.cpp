#include <ATen/ATen.h>

#include <tessera/datasets/tensor_dataset.hpp>
#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/planning.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/virtual_meshes.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr double tolerance = 1e-5;

const Json& goldens(const std::string& part) {
  static const Json all = read_json_file(golden_path("keras_layers.json").string());
  return all.at(part);
}

at::Tensor input_tensor(const Json& json) {
  return golden_tensor(json, json.at("dtype") == "int32" ? at::kInt : at::kFloat);
}

std::vector<at::Tensor> input_tensors(const Json& list) {
  std::vector<at::Tensor> tensors;
  for (const Json& json : list) tensors.push_back(input_tensor(json));
  return tensors;
}

/// Within the tolerance of the tensor's scale.
std::string unlike(const at::Tensor& actual, const Json& golden) {
  const at::Tensor expected = golden_tensor(golden);
  const double scale = expected.numel() == 0 ? 0 : expected.abs().max().item<double>();
  return difference(actual, expected, 0, tolerance * std::max(scale, 1e-3));
}

/// The layer as Keras describes it, with Keras' weights, on the mesh of the inputs.
LayerHandle layer_of(const Json& golden, const Inputs& inputs) {
  const LayerHandle layer = layer_from_config(golden.at("layer"), JsonPath("golden"));
  Shapes shapes;
  for (const DTensor& input : inputs) shapes.push_back(input.shape());
  layer->build(shapes);
  std::vector<Variable> weights = layer->weights();
  REQUIRE(weights.size() == golden.at("weights").size());
  for (size_t w = 0; w < weights.size(); ++w) {
    const Layout whole =
        Layout::replicated(inputs[0].mesh(), static_cast<int64_t>(weights[w].shape().size()));
    weights[w].place({weights[w].shape(), whole});
    weights[w].assign(pack(golden_tensor(golden.at("weights")[w]), whole));
  }
  return layer;
}

DTensor on_one_device(const at::Tensor& tensor) {
  return pack(tensor, Layout::replicated(default_mesh(), tensor.dim()));
}

/// What the golden's gradients are weighted with.
at::Tensor upstream(const Shape& shape) {
  return (at::arange(numel(shape)).remainder(7) / 2.0 - 1.25).reshape(shape).to(at::kFloat);
}

}  // namespace

TEST_CASE("layers give Keras' outputs, penalties and gradients") {
  for (const Json& golden : goldens("layers")) {
    CAPTURE(golden.at("layer").dump());
    Inputs inputs;
    for (const at::Tensor& input : input_tensors(golden.at("inputs"))) {
      inputs.push_back(on_one_device(input));
    }
    const LayerHandle layer = layer_of(golden, inputs);
    std::vector<DTensor> sources;
    for (const DTensor& input : inputs) {
      if (at::isFloatingType(input.dtype())) sources.push_back(input);
    }
    GradientTape tape;
    for (const DTensor& source : sources) tape.watch(source);
    for (const Variable& weight : layer->trainable_weights()) sources.push_back(weight.value());
    const DTensor y = layer(inputs);
    DTensor loss = ops::sum(y * on_one_device(upstream(y.shape())));
    const std::vector<DTensor> losses = layer->losses();
    REQUIRE(losses.size() == golden.at("losses").size());
    for (size_t i = 0; i < losses.size(); ++i) {
      CHECK(losses[i].item() == Approx(golden.at("losses")[i].get<double>()).epsilon(tolerance));
      loss = loss + losses[i];
    }
    const std::vector<DTensor> gradients = tape.gradient(loss, sources);
    CHECK(unlike(y.full(), golden.at("output")) == "");
    REQUIRE(gradients.size() == golden.at("gradients").size());
    for (size_t g = 0; g < gradients.size(); ++g) {
      REQUIRE(gradients[g].defined());
      CHECK(unlike(gradients[g].full(), golden.at("gradients")[g]) == "");
    }
  }
}

TEST_CASE("layers give Keras' outputs under every layout of their inputs") {
  for (const Json& golden : goldens("layers")) {
    CAPTURE(golden.at("layer").dump());
    const auto call = [&](const Inputs& inputs) { return layer_of(golden, inputs)(inputs); };
    const at::Tensor expected = golden_tensor(golden.at("output"));
    CHECK(wrong_values(input_tensors(golden.at("inputs")), call, expected, 3e-5) == "");
  }
}

TEST_CASE("layers plan what they would give") {
  for (const Json& golden : goldens("layers")) {
    CAPTURE(golden.at("layer").dump());
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{1}, {2, 2}}) {
      const PlanningScope plans_only(virtual_mesh(sizes));
      Inputs inputs;
      for (const at::Tensor& input : input_tensors(golden.at("inputs"))) {
        inputs.push_back(filled(input.sizes().vec(), 0, input.scalar_type()));
      }
      const LayerHandle layer = layer_from_config(golden.at("layer"), JsonPath("golden"));
      const DTensor y = layer(inputs);
      CHECK(y.shape() == golden.at("output").at("shape").get<Shape>());
      for (const Variable& weight : layer->weights()) CHECK_FALSE(weight.has_value());
    }
  }
}

TEST_CASE("Keras' configurations come back as they were") {
  for (const Json& golden : goldens("layers")) {
    CAPTURE(golden.at("layer").dump());
    const LayerHandle layer = layer_from_config(golden.at("layer"), JsonPath("golden"));
    const Json config = layer->config();
    CHECK(layer->class_name() == golden.at("layer").at("class_name"));
    for (const auto& [key, expected] : golden.at("layer").at("config").items()) {
      CAPTURE(key);
      if (key == "quantization_config") continue;
      if (key == "dtype") {
        CHECK(config.at(key) == expected.at("config").at("name"));
      } else if (expected.is_object()) {
        CHECK(config.at(key).at("class_name") == expected.at("class_name"));
        for (const auto& [option, value] : expected.at("config").items()) {
          if (option != "input_axes" && option != "output_axes") {
            CHECK(config.at(key).at("config").at(option) == value);
          }
        }
      } else {
        CHECK(config.at(key) == expected);
      }
    }
  }
}

TEST_CASE("Normalization adapts as Keras does") {
  for (const Json& golden : goldens("adapt")) {
    CAPTURE(golden.at("axis").dump());
    const at::Tensor data = input_tensor(golden.at("data"));
    const NormalizationOptions options{.axis = golden.at("axis").get<std::vector<int64_t>>()};
    const Normalization whole(options);
    whole.adapt(data);
    const Normalization by_rows(options);
    by_rows.adapt(TensorDataset(data, at::zeros(data.size(0))));
    for (const Normalization& layer : {whole, by_rows}) {
      CHECK(unlike(layer->weights()[0].value().full(), golden.at("mean")) == "");
      CHECK(unlike(layer->weights()[1].value().full(), golden.at("variance")) == "");
      CHECK(unlike(layer(on_one_device(data)).full(), golden.at("output")) == "");
    }
  }
}
