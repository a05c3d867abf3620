#pragma once

#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of RMSNormalization.
struct RMSNormalizationOptions {
  std::vector<int64_t> axis = {-1};  ///< axes that are normalized together
  double epsilon = 1e-6;             ///< added to the mean of the squares
  std::string name = "";             ///< first component of the weights' paths
  std::string dtype = "";            ///< dtype policy (default: the global policy)
  bool trainable = true;             ///< whether training changes the weights
};

/// y = x / sqrt(mean(x²) + epsilon) · scale, with the mean over `axis`
/// (keras.layers.RMSNormalization, arXiv 1910.07467). Computed in at least float32 under any
/// policy.
///
/// Shape: (batch, …) -> (batch, …). Throws ShapeError for an input that lacks an axis, or whose
/// extent there is unknown or differs from when built.
/// Weights: scale, with the extents of `axis` in ascending order.
/// Communication: none if the axes are replicated. Over the mesh dimensions that shard one of them,
/// the mean costs one all-reduce of its shape, and its gradient another. x keeps its layout.
class RMSNormalization : public LayerHandle {
 public:
  /// Throws ConfigError for no axis.
  explicit RMSNormalization(const RMSNormalizationOptions& options = {});
};

}  // namespace tessera
