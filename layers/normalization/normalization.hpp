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

/// The options of GroupNormalization.
struct GroupNormalizationOptions {
  int64_t groups = 32;                           ///< number of groups; -1: one per channel
  int64_t axis = -1;                             ///< channel axis, which is split into groups
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

/// y = (x - mean) / sqrt(variance + epsilon) · gamma + beta, with the mean and biased variance of
/// each row and channel group (`axis` is split into `groups` equal groups), over all other axes
/// (keras.layers.GroupNormalization, arXiv 1803.08494). Computed in at least float32 under any
/// policy.
///
/// Shape: (batch, …) -> (batch, …). The mask passes through. Throws ShapeError for an input that
/// lacks the axis, or whose extent there is unknown, differs from when built or is not divisible by
/// the groups.
/// Weights: gamma and beta, each with one element per index of `axis`.
/// Communication: none if only the batch is sharded, or also `axis` with no group split between
/// shards. Over the mesh dimensions that shard a reduced axis, each moment costs one all-reduce of
/// its shape, and its gradient another. x keeps its layout if no group is split between shards.
///
///     GroupNormalization({.groups = 8})
class GroupNormalization : public LayerHandle {
 public:
  /// Throws ConfigError unless groups is -1 or positive, and for an unknown name.
  explicit GroupNormalization(const GroupNormalizationOptions& options = {});
};

/// The options of RMSNormalization.
struct RMSNormalizationOptions {
  std::vector<int64_t> axis = {-1};  ///< axes that are normalized together
  double epsilon = 1e-6;             ///< added to the mean of the squares
  /// Whether the factor is 1 + scale, and `scale` is initially 0 (Gemma); Keras' layer lacks it.
  bool add_unit_offset = false;
  std::string name = "";   ///< first component of the weights' paths
  std::string dtype = "";  ///< dtype policy (default: the global policy)
  bool trainable = true;   ///< whether training changes the weights
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

/// The options of UnitNormalization.
struct UnitNormalizationOptions {
  std::vector<int64_t> axis = {-1};  ///< axes to normalize over
  std::string name = "";             ///< first component of the weights' paths
  std::string dtype = "";            ///< dtype policy (default: the global policy)
  bool trainable = true;             ///< whether training changes the weights
};

/// y = x / max(‖x‖, 1e-12), with the L2 norm over `axis` (keras.layers.UnitNormalization).
///
/// Shape: (batch, …) -> (batch, …). The mask passes through. Throws ShapeError for an axis that the
/// input lacks.
/// Communication: none if the axes are replicated; if one is sharded, one all-reduce of the squared
/// norms.
class UnitNormalization : public LayerHandle {
 public:
  /// Throws ConfigError for no axes.
  explicit UnitNormalization(const UnitNormalizationOptions& options = {});
};

}  // namespace tessera
