#pragma once

#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of RMSNormalization.
struct RMSNormalizationOptions {
  std::vector<int64_t> axis = {-1};  ///< axes that are normalized together
  double epsilon = 1e-6;             ///< added to the mean of the squares
  std::string name = "";             ///< first part of the weights' paths
  std::string dtype = "";            ///< policy; the default one if empty
  bool trainable = true;             ///< whether training changes the weights
};

/// y = x / sqrt(mean(x²) + epsilon) · scale, the mean over `axis` (keras.layers.RMSNormalization,
/// arXiv 1910.07467), at least in float32 whatever the policy.
///
/// Shape: (batch, …) -> (batch, …). Throws ShapeError for an input that lacks an axis, does not
/// tell its extent, or has another than when built.
/// Weights: scale, of the extents of `axis` in ascending order.
/// Communication: none if the axes are whole. Over the mesh dimensions that cut one of them the
/// mean costs one all-reduce of its shape, and its gradient another. x keeps its layout.
class RMSNormalization : public LayerHandle {
 public:
  /// Throws ConfigError for no axis.
  explicit RMSNormalization(const RMSNormalizationOptions& options = {});
};

}  // namespace tessera
