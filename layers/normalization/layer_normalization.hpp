#pragma once

#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of LayerNormalization.
struct LayerNormalizationOptions {
  std::vector<int64_t> axis = {-1};              ///< axes that are normalized together
  double epsilon = 1e-3;                         ///< added to the variance
  bool center = true;                            ///< adds `beta`
  bool scale = true;                             ///< multiplies by `gamma`
  InitializerHandle beta_initializer = "zeros";  ///< first values of `beta`
  InitializerHandle gamma_initializer = "ones";  ///< first values of `gamma`
  RegularizerHandle beta_regularizer = {};       ///< penalty on `beta`
  RegularizerHandle gamma_regularizer = {};      ///< penalty on `gamma`
  ConstraintHandle beta_constraint = {};         ///< what `beta` is brought back to
  ConstraintHandle gamma_constraint = {};        ///< what `gamma` is brought back to
  std::string name = "";                         ///< first part of the weights' paths
  std::string dtype = "";                        ///< policy; the default one if empty
  bool trainable = true;                         ///< whether training changes the weights
};

/// y = (x - mean) / sqrt(variance + epsilon) · gamma + beta, mean and biased variance over `axis`
/// at each index of the others (keras.layers.LayerNormalization), at least in float32 whatever the
/// policy.
///
/// Shape: (batch, …) -> (batch, …). The mask stays. Throws ShapeError for an input that lacks an
/// axis, does not tell its extent, or has another than when built.
/// Weights: gamma and beta, of the extents of `axis` in ascending order.
/// Communication: none if the axes are whole. Over the mesh dimensions that cut one of them each
/// moment costs one all-reduce of its shape, and its gradient another. x keeps its layout.
///
///     LayerNormalization({.epsilon = 1e-6, .name = "norm"})
class LayerNormalization : public LayerHandle {
 public:
  /// Throws ConfigError for no axis or an unknown name.
  explicit LayerNormalization(const LayerNormalizationOptions& options = {});
};

}  // namespace tessera
