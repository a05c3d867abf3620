#pragma once

#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::test {

using namespace detail;

/// Three Dense layers, 64 features and 32, 24, 10 units, with Adam, built and compiled; its weights
/// are not drawn.
ModelHandle checkpoint_model(const LayoutMap& layouts);

/// Mesh and layouts for it on 1, 2, 4 or 8 devices: "data", "model", "spatial", "mixed", the last
/// with optimizer slots that are cut further.
MeshDims checkpoint_mesh(const std::string& kind, int64_t devices);
LayoutMap checkpoint_layouts(const std::string& kind, int64_t devices);
LayoutMap checkpoint_layouts(const std::string& kind, const Mesh& mesh);

/// Gives weights and slots random values, the same for the same seed on every mesh.
void fill(const ModelHandle& model, int64_t seed);

/// Weights and optimizer variables, whole, in order. Collective.
struct Everything {
  explicit Everything(const ModelHandle& model);
  /// Names what is not equal in every bit.
  std::string difference(const Everything& other) const;

  std::vector<std::pair<std::string, at::Tensor>> tensors;
};

}  // namespace tessera::test
