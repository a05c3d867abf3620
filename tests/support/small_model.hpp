#pragma once

#include <tessera/tessera.hpp>

namespace tessera::test {

/// A classifier of 5 classes like mnist's, small and in float64: 18 features, ReLU layers of 14 and
/// 9 units, 5 logits; weights from Glorot's scheme at fixed seeds.
Sequential small_model();

/// How small_model() is trained: sparse cross-entropy, Adam as in the Core-API guide, accuracy.
CompileOptions small_compile(const LayoutMap& layouts);

/// Samples for it, the same for the same seed; with `weighted` each has a weight.
TensorDataset small_data(int64_t rows, int64_t seed = 1, bool weighted = false);

/// The layouts of mnist's files for the small model, by name: "data", "model", "feature", "fsdp".
LayoutMap small_layouts(const std::string& name, const Mesh& mesh);

/// The small model, compiled for data parallelism on a mesh.
Sequential compiled_small(const Mesh& mesh);

/// A way to train the small model: the name for small_layouts(), and a mesh.
struct SmallScheme {
  std::string layouts;
  MeshDims mesh;
};
/// Data, model (three meshes), feature parallelism and fully sharded weights, over 8 devices.
const std::vector<SmallScheme>& small_schemes();

/// Every weight, whole. Collective.
std::vector<at::Tensor> whole_weights(const ModelHandle& model);

}  // namespace tessera::test
