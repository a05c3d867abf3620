#include <ATen/ATen.h>

#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/augmentation.hpp>

#include "tests/support/catch.hpp"
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

void check_transforms(const std::string& part) {
  for (const Json& golden : golden_part("keras_augmentation.json", part)) {
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
        CHECK(unlike(outputs[o].full(), golden.at("outputs")[o]) == "");
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
