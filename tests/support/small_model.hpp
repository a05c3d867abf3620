#pragma once

#include <tessera/tessera.hpp>

namespace tessera::test {

/// A small float64 classifier of 5 classes like mnist's: 18 features, ReLU layers of 14 and 9
/// units, 5 logits; weights from Glorot's scheme with fixed seeds.
Sequential small_model();

/// How small_model() is trained: sparse cross-entropy, Adam as in the Core-API guide, accuracy.
CompileOptions small_compile(const LayoutMap& layouts);

/// Returns rows for it that depend only on the seed; with `weighted` each has a weight.
TensorDataset small_data(int64_t rows, int64_t seed = 1, bool weighted = false);

/// Returns the layouts of mnist's files for the small model, by name: "data", "model", "feature",
/// "fsdp".
LayoutMap small_layouts(const std::string& name, const Mesh& mesh);

/// Returns the small model, compiled for data parallelism on a mesh.
Sequential compiled_small(const Mesh& mesh);

/// A way to train the small model: the name for small_layouts(), and a mesh.
struct SmallScheme {
  std::string layouts;
  MeshDims mesh;
};
/// Returns data, model (three meshes), feature parallelism and fully sharded weights, over 8
/// devices.
const std::vector<SmallScheme>& small_schemes();

/// Returns every weight in full. Collective.
std::vector<at::Tensor> full_weights(const ModelHandle& model);

}  // namespace tessera::test
