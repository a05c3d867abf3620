#pragma once

#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of LayerNormalization.
struct LayerNormalizationOptions {
  std::vector<int64_t> axis = {-1};              ///< axes that are normalized together
  double epsilon = 1e-3;                         ///< added to the variance
  bool center = true;                            ///< whether to add `beta`
  bool scale = true;                             ///< whether to scale by `gamma`
  InitializerHandle beta_initializer = "zeros";  ///< initializer of `beta`
  InitializerHandle gamma_initializer = "ones";  ///< initializer of `gamma`
  RegularizerHandle beta_regularizer = {};       ///< penalty on `beta`
  RegularizerHandle gamma_regularizer = {};      ///< penalty on `gamma`
  ConstraintHandle beta_constraint = {};         ///< constraint on `beta`
  ConstraintHandle gamma_constraint = {};        ///< constraint on `gamma`
  std::string name = "";                         ///< first component of the weights' paths
  std::string dtype = "";                        ///< dtype policy (default: the global policy)
  bool trainable = true;                         ///< whether training changes the weights
};

/// y = (x - mean) / sqrt(variance + epsilon) · gamma + beta, with the mean and biased variance over
/// `axis` at each index of the other axes (keras.layers.LayerNormalization). Computed in at least
/// float32 under any policy.
///
/// Shape: (batch, …) -> (batch, …). The mask passes through. Throws ShapeError for an input that
/// lacks an axis, or whose extent there is unknown or differs from when built.
/// Weights: gamma and beta, with the extents of `axis` in ascending order.
/// Communication: none if the axes are replicated. Over the mesh dimensions that shard one of them,
/// each moment costs one all-reduce of its shape, and its gradient another. x keeps its layout.
///
///     LayerNormalization({.epsilon = 1e-6, .name = "norm"})
class LayerNormalization : public LayerHandle {
 public:
  /// Throws ConfigError for no axis or an unknown name.
  explicit LayerNormalization(const LayerNormalizationOptions& options = {});
};

}  // namespace tessera
