#include "tests/support/keras_graphs.hpp"

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace tessera::test {
namespace {

/// Packs x with its batch sharded by the mesh's first dimension and its last axis by the second.
DTensor placed(const at::Tensor& x, const Mesh& mesh) {
  LayoutSpec spec(static_cast<size_t>(x.dim()), unsharded);
  spec[0] = "batch";
  if (mesh.dims().size() > 1 && x.dim() > 1) spec.back() = "model";
  return pack(x, Layout(spec, mesh));
}

std::string far_from(const at::Tensor& actual, const Json& golden) {
  const at::Tensor expected = input_tensor(golden);
  const at::Tensor wide = expected.to(at::kDouble);
  const double scale = wide.numel() > 0 ? wide.abs().max().item<double>() : 0;
  return difference(actual.to(at::kDouble), wide, 0, 1e-6 * scale);
}

}  // namespace

Mesh mesh_of(const std::vector<int64_t>& sizes) {
  if (sizes.size() == 2) {
    return create_mesh({{"batch", sizes[0]}, {"model", sizes[1]}}, virtual_cpus(4));
  }
  return create_mesh({{"batch", sizes[0]}}, virtual_cpus(sizes[0]));
}

ModelHandle read_model(const Json& golden) { return model_from_config(golden.at("model")); }

void check_outputs(const ModelHandle& model, const Json& golden) {
  model.set_weights(input_tensors(golden.at("weights")));
  for (const std::vector<int64_t>& sizes : checked_meshes) {
    const Mesh mesh = mesh_of(sizes);
    CAPTURE(sizes);
    model->place_weights(LayoutMap(mesh));
    Inputs inputs;
    for (const at::Tensor& x : input_tensors(golden.at("x"))) inputs.push_back(placed(x, mesh));
    const std::vector<DTensor> outputs = model.outputs(inputs);
    REQUIRE(outputs.size() == golden.at("y").size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      CHECK(far_from(outputs[i].full(), golden.at("y")[i]) == "");
    }
  }
}

}  // namespace tessera::test
