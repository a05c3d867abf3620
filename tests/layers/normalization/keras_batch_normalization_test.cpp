#include <tessera/layers/normalization/batch_normalization.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace keras_batch_normalization_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

const Json& cases() {
  static const Json all = read_json_file(golden_path("keras_batch_normalization.json").string());
  return all.at("cases");
}

/// The tolerance of a case: bfloat16 has 8 bits.
double tolerance(const Json& golden) {
  const std::string dtype =
      golden.at("layer").at("config").at("dtype").at("config").at("name").get<std::string>();
  return dtype == "float32" ? 1e-5 : 1e-2;
}

/// Returns the difference beyond a tolerance relative to the tensor's largest number.
std::string unlike(const at::Tensor& actual, const Json& expected, double relative) {
  const at::Tensor tensor = golden_tensor(expected);
  const double scale = std::max(tensor.abs().max().item<double>(), 1e-3);
  return difference(actual.to(at::kFloat), tensor, 0, relative * scale);
}

/// Returns the layer as Keras describes it, with Keras' initial weights, its features and weights
/// sharded over the mesh dimensions in `features`.
LayerHandle layer_of(const Json& golden, const Mesh& mesh, const AxisSpec& features) {
  const LayerHandle layer = layer_from_config(golden.at("layer"), JsonPath("golden"));
  layer->build({golden.at("batches")[0].at("shape").get<Shape>()});
  LayoutMap layouts(mesh);
  layouts[".*"] = {features};
  layer->place_weights(layouts);
  std::vector<Variable> weights = layer->weights();
  REQUIRE(weights.size() == golden.at("weights").size());
  for (size_t w = 0; w < weights.size(); ++w) {
    weights[w].assign(pack(golden_tensor(golden.at("weights")[w]), weights[w].layout()));
  }
  return layer;
}

/// Checks one call, and its gradients given Keras' upstream gradient.
void check_step(const LayerHandle& layer, const Json& batch, const Layout& layout, bool training,
                const Json& expected, double relative) {
  const DTensor x = pack(golden_tensor(batch), layout);
  std::vector<DTensor> sources = {x};
  GradientTape tape;
  tape.watch(x);
  for (const Variable& weight : layer->trainable_weights()) sources.push_back(weight.value());
  const DTensor y = layer(x, {.training = training});
  CHECK(y.shape() == x.shape());
  at::Tensor upstream = (at::arange(y.numel()).remainder(7) / 2.0 - 1.25).reshape(y.shape());
  const DTensor factors = pack(upstream.to(at::kFloat), Layout::replicated(y.mesh(), y.rank()));
  DTensor loss = ops::sum(ops::cast(y, at::kFloat) * factors);
  for (const DTensor& penalty : layer->losses()) loss = loss + penalty;
  const std::vector<DTensor> gradients = tape.gradient(loss, sources);
  CHECK(unlike(y.full(), expected.at("output"), relative) == "");
  CHECK(layer->losses().size() == expected.at("losses").size());
  REQUIRE(gradients.size() == expected.at("gradients").size());
  for (size_t g = 0; g < gradients.size(); ++g) {
    CAPTURE(g);
    CHECK(unlike(gradients[g].full(), expected.at("gradients")[g], relative) == "");
  }
}

/// Checks three training steps, then inference, then a step of the frozen layer.
void check_case(const Json& golden, const Layout& layout, const AxisSpec& features) {
  const double relative = tolerance(golden);
  const LayerHandle layer = layer_of(golden, layout.mesh(), features);
  const Json& batches = golden.at("batches");
  for (size_t b = 0; b < batches.size(); ++b) {
    CAPTURE(b);
    check_step(layer, batches[b], layout, true, golden.at("training")[b], relative);
  }
  const auto check_moved = [&] {
    const Json& moved = golden.at("moved");
    const std::vector<Variable> weights = layer->weights();
    for (size_t m = 0; m < moved.size(); ++m) {
      const Variable& moving = weights[weights.size() - moved.size() + m];
      CAPTURE(moving.path());
      CHECK(unlike(moving.value().full(), moved[m], 1e-5) == "");
    }
  };
  check_moved();
  check_step(layer, batches[0], layout, false, golden.at("inference"), relative);
  layer->set_trainable(false);
  check_step(layer, batches[1], layout, true, golden.at("frozen"), relative);
  check_moved();
}

}  // namespace

TEST_CASE("BatchNormalization matches Keras in training, in inference and frozen, on any mesh") {
  for (const Json& golden : cases()) {
    CAPTURE(golden.at("layer").dump());
    const auto rank = static_cast<int64_t>(golden.at("batches")[0].at("shape").size());
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{1}, {3}, {2, 2}}) {
      const Mesh mesh = virtual_mesh(sizes);
      for (const Layout& layout : all_layouts(mesh, rank)) {
        CAPTURE(layout.describe());
        check_case(golden, layout, unsharded);
        check_case(golden, layout, "x");
      }
    }
  }
}

TEST_CASE("BatchNormalization's Keras configurations round-trip") {
  for (const Json& golden : cases()) {
    CAPTURE(golden.at("layer").dump());
    const LayerHandle layer = layer_from_config(golden.at("layer"), JsonPath("golden"));
    const Json config = layer->config();
    for (const auto& [key, expected] : golden.at("layer").at("config").items()) {
      CAPTURE(key);
      if (key == "dtype") {
        CHECK(config.at(key) == expected.at("config").at("name"));
      } else if (key == "renorm_clipping" && expected == Json::object()) {
        CHECK(config.at(key) == nullptr);
      } else if (expected.is_object() && expected.contains("class_name")) {
        CHECK(config.at(key).at("class_name") == expected.at("class_name"));
        for (const auto& [option, value] : expected.at("config").items()) {
          if (option == "input_axes" || option == "output_axes") continue;
          CHECK(config.at(key).at("config").at(option) == value);
        }
      } else {
        CHECK(config.at(key) == expected);
      }
    }
  }
}

}  // namespace keras_batch_normalization_test
