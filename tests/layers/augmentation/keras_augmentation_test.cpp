#include <ATen/ATen.h>

#include <functional>

#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/augmentation/color.hpp>
#include <tessera/layers/internal/augmentation.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/virtual_meshes.hpp"

/// Augmentation layers against Keras, given the draws of Keras' layers.
namespace keras_augmentation_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Returns the tensor with its rows sharded over the mesh.
DTensor cut(const at::Tensor& tensor, const Mesh& mesh) {
  std::vector<std::vector<int>> axes(static_cast<size_t>(tensor.dim()));
  axes[0] = {0};
  return pack(tensor, Layout::from_axes(mesh, axes));
}

/// Compares the cases of a part with Keras; those for which other(row) is true must differ.
void check_transforms(
    const std::string& part,
    const std::function<bool(size_t row)>& other = [](size_t) { return false; }) {
  const Json& cases = golden_part("keras_augmentation.json", part);
  REQUIRE_FALSE(cases.empty());
  for (size_t row = 0; row < cases.size(); ++row) {
    const Json& golden = cases[row];
    CAPTURE(golden.at("layer").dump());
    check_config(golden);
    const LayerHandle handle = layer_from_config(golden.at("layer"), JsonPath("golden"));
    const auto layer = as_augmentation(handle);
    const std::vector<at::Tensor> golden_inputs = input_tensors(golden.at("inputs"));
    const Json& table = golden.at("draws");
    const at::Tensor rows = table.is_null() ? at::zeros({3, 0}) : input_tensor(table);
    REQUIRE(layer->draws(golden_inputs[0].sizes().vec()) == rows.size(1));
    for (const Mesh& mesh : {virtual_mesh({1}), virtual_mesh({2})}) {
      const ImageDraws draws(cut(rows, mesh),
                             pack(rows.narrow(0, 0, 1), Layout::replicated(mesh, 2)));
      Inputs inputs;
      for (const at::Tensor& tensor : golden_inputs) inputs.push_back(cut(tensor, mesh));
      const std::vector<DTensor> outputs = layer->transform_all(inputs, draws);
      REQUIRE(outputs.size() == golden.at("outputs").size());
      for (size_t o = 0; o < outputs.size(); ++o) {
        const std::string difference = unlike(outputs[o].full(), golden.at("outputs")[o]);
        if (!other(row)) {
          CHECK(difference == "");
        } else {
          CHECK(difference != "");
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("geometric augmentation layers match Keras for its draws") { check_transforms("moving"); }

TEST_CASE("color augmentation layers match Keras for its draws") { check_transforms("colors"); }

TEST_CASE("layers that mix, erase and choose match Keras for its draws") {
  check_transforms("mixing");
}

TEST_CASE("RandomInvert matches Keras for its draws if the range begins with 0") {
  check_transforms("inverting", [](size_t row) {
    return other_than_keras("keras_augmentation.json", "inverting", row);
  });
}

TEST_CASE("RandomInvert reverses any range") {
  const at::Tensor x = at::rand({6, 5, 4, 3}) * 2 - 1;
  const at::Tensor y = RandomInvert({1, 1}, {.value_range = {-1, 1}, .name = "a"})(x, 3);
  CHECK(y.equal(x.neg()));
}

TEST_CASE("RandomGaussianBlur matches Keras for its draws") { check_transforms("smoothing"); }

TEST_CASE("ContrastLimitedAdaptiveHistogramEqualization matches Keras") {
  check_transforms("equalizing");
}

TEST_CASE("AugMix matches Keras for its draws") { check_transforms("chains"); }

TEST_CASE("RandomElasticTransform matches Keras for its draws") { check_transforms("distorting"); }

TEST_CASE("configurations of augmentation layers match Keras") {
  for (const Json& golden : golden_part("keras_augmentation.json", "configs")) {
    CAPTURE(golden.at("layer").dump());
    const LayerHandle layer = layer_from_config(golden.at("layer"), JsonPath("golden"));
    CHECK(layer->class_name() == golden.at("layer").at("class_name"));
    CHECK(layer->config().at("name") == golden.at("layer").at("config").at("name"));
    const LayerHandle again = layer_from_config(layer_json(*layer.layer()), JsonPath("again"));
    CHECK(layer_json(*again.layer()) == layer_json(*layer.layer()));
  }
}

}  // namespace keras_augmentation_test
