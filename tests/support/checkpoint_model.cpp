#include "tests/support/checkpoint_model.hpp"

#include <ATen/ATen.h>

#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {

using namespace detail;

namespace {

std::vector<Variable> all_variables(const ModelHandle& model) {
  std::vector<Variable> all = model.weights();
  for (const Variable& variable : model->optimizer()->variables()) all.push_back(variable);
  return all;
}

}  // namespace

ModelHandle checkpoint_model(const LayoutMap& layouts) {
  const Sequential model({Dense(32, {.activation = "relu", .name = "hidden_1"}),
                          Dense(24, {.activation = "relu", .name = "hidden_2"}),
                          Dense(10, {.name = "logits"})});
  model.build({-1, 64});
  model.compile({.optimizer = Adam(1e-2),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .layouts = layouts});
  return model;
}

MeshDims checkpoint_mesh(const std::string& kind, int64_t devices) {
  if (kind == "data") return {{"batch", devices}};
  if (kind == "model") return {{"model", devices}};
  if (kind == "spatial") return {{"feature", devices}};
  const int64_t batch = devices > 4 ? 2 : 1, feature = devices > 1 ? 2 : 1;
  return {{"batch", batch}, {"feature", feature}, {"model", devices / batch / feature}};
}

LayoutMap checkpoint_layouts(const std::string& kind, int64_t devices) {
  return checkpoint_layouts(kind, create_mesh(checkpoint_mesh(kind, devices)));
}

LayoutMap checkpoint_layouts(const std::string& kind, const Mesh& mesh) {
  LayoutMap layouts(mesh);
  if (kind == "model") {
    layouts["hidden_1/kernel"] = {unsharded, "model"};
    layouts["hidden_2/kernel"] = {"model", unsharded};
    layouts["logits/kernel"] = {unsharded, "model"};
  } else if (kind == "spatial") {
    layouts["hidden_1/kernel"] = {"feature", unsharded};
    layouts["hidden_2/kernel"] = {unsharded, "feature"};
  } else if (kind == "mixed") {
    layouts.add({.match = "hidden_1/kernel",
                 .layout = {"feature", "model"},
                 .slots = LayoutSpec{{"feature", "batch"}, "model"}});
    layouts["hidden_2/kernel"] = {{"feature", "model"}, unsharded};
  }
  return layouts;
}

void fill(const ModelHandle& model, int64_t seed) {
  uint64_t number = static_cast<uint64_t>(seed) * 1000;
  for (Variable variable : all_variables(model)) {
    const at::Tensor full = random_values({variable.shape(), variable.dtype()}, ++number);
    variable.assign(pack(full, variable.layout()));
  }
}

Everything::Everything(const ModelHandle& model) {
  for (const Variable& variable : all_variables(model)) {
    tensors.emplace_back(variable.path(), variable.value().full().clone());
  }
}

std::string Everything::difference(const Everything& other) const {
  if (tensors.size() != other.tensors.size()) return "other tensors";
  std::string names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!at::equal(tensors[i].second, other.tensors[i].second)) names += tensors[i].first + " ";
  }
  return names;
}

}  // namespace tessera::test
