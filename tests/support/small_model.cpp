#include "tests/support/small_model.hpp"

#include <ATen/ATen.h>

#include <tessera/framework/mesh/layout_file.hpp>

#include "tests/support/files.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {
namespace {

DenseOptions dense(const std::string& name, const char* activation, int64_t seed) {
  return {.activation = activation,
          .kernel_initializer = GlorotUniform({.seed = seed}),
          .name = name,
          .dtype = "float64"};
}

}  // namespace

Sequential small_model() {
  return Sequential({Dense(14, dense("hidden_1", "relu", 21)),
                     Dense(9, dense("hidden_2", "relu", 22)),
                     Dense(5, dense("logits", "linear", 23))});
}

CompileOptions small_compile(const LayoutMap& layouts) {
  return {.optimizer = Adam(1e-2, {.epsilon_on_corrected_root = true}),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .metrics = {"accuracy"},
          .layouts = layouts};
}

TensorDataset small_data(int64_t rows, int64_t seed, bool weighted) {
  const uint64_t base = static_cast<uint64_t>(seed) * 10;
  Examples all;
  all.x = {random_values({{rows, 18}, at::kDouble}, base)};
  all.y = {random_values({{rows}, at::kLong, 0, 5}, base + 1)};
  if (weighted) all.sample_weight = {random_values({{rows}, at::kDouble, 0, 2}, base + 2)};
  return TensorDataset(all);
}

LayoutMap small_layouts(const std::string& name, const Mesh& mesh) {
  const std::string file = tree_path("apps/mnist/layouts") / (name + ".json");
  return make_layout_map(read_layout_file(file), mesh);
}

Sequential compiled_small(const Mesh& mesh) {
  const Sequential model = small_model();
  model.compile(small_compile(small_layouts("data", mesh)));
  return model;
}

const std::vector<SmallScheme>& small_schemes() {
  static const std::vector<SmallScheme> schemes = {
      {"data", {{"batch", 8}}},
      {"model", {{"batch", 4}, {"model", 2}}},
      {"model", {{"batch", 2}, {"model", 4}}},
      {"model", {{"model", 8}}},
      {"feature", {{"batch", 2}, {"feature", 2}, {"model", 2}}},
      {"fsdp", {{"batch", 8}}},
  };
  return schemes;
}

std::vector<at::Tensor> full_weights(const ModelHandle& model) {
  std::vector<at::Tensor> list;
  for (const Variable& weight : model.weights()) list.push_back(weight.value().full().clone());
  return list;
}

}  // namespace tessera::test
