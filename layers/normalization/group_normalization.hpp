#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of GroupNormalization.
struct GroupNormalizationOptions {
  int64_t groups = 32;                           ///< number of groups; -1: one for each channel
  int64_t axis = -1;                             ///< axis that is cut into groups, the channels'
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

/// y = (x - mean) / sqrt(variance + epsilon) · gamma + beta, mean and biased variance of each row
/// and each of `groups` equal parts of `axis`, over all other axes
/// (keras.layers.GroupNormalization, arXiv 1803.08494), at least in float32 whatever the policy.
///
/// Shape: (batch, …) -> (batch, …). The mask stays. Throws ShapeError for an input that lacks the
/// axis, does not tell its extent, has another than when built, or one that the groups do not
/// divide.
/// Weights: gamma and beta, a number for each index of `axis`.
/// Communication: none if only the batch is sharded, and `axis` so that no shard border cuts a
/// group. Over the mesh dimensions that cut a reduced axis each moment costs one all-reduce of its
/// shape, and its gradient another. x keeps its layout where no border cuts a group.
///
///     GroupNormalization({.groups = 8})
class GroupNormalization : public LayerHandle {
 public:
  /// Throws ConfigError unless groups is -1 or positive, and for an unknown name.
  explicit GroupNormalization(const GroupNormalizationOptions& options = {});
};

}  // namespace tessera
