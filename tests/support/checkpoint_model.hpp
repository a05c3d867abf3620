#pragma once

#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::test {

using namespace detail;

/// A model of three Dense layers (64 features and 32, 24, 10 units) with Adam, built and compiled;
/// its weights are not drawn yet.
ModelHandle checkpoint_model(const LayoutMap& layouts);

/// Mesh and layouts for it on 1, 2, 4 or 8 devices: "data", "model", "spatial", "mixed". The last
/// one shards optimizer slots further.
MeshDims checkpoint_mesh(const std::string& kind, int64_t devices);
LayoutMap checkpoint_layouts(const std::string& kind, int64_t devices);
LayoutMap checkpoint_layouts(const std::string& kind, const Mesh& mesh);

/// Gives weights and slots random values that depend only on the seed, not on the mesh.
void fill(const ModelHandle& model, int64_t seed);

/// All weights and optimizer variables, in full and in order. Collective.
struct Everything {
  explicit Everything(const ModelHandle& model);
  /// Names the first value that is not bitwise equal; "" if all are.
  std::string difference(const Everything& other) const;

  std::vector<std::pair<std::string, at::Tensor>> tensors;
};

}  // namespace tessera::test
