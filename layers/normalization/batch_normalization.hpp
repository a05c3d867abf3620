#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Limits of batch renormalization's corrections (Keras' dict); absent: no limit.
struct RenormClipping {
  std::optional<double> rmin = std::nullopt;  ///< smallest factor r
  std::optional<double> rmax = std::nullopt;  ///< largest factor r
  std::optional<double> dmax = std::nullopt;  ///< largest offset |d|
};

/// The options of BatchNormalization.
struct BatchNormalizationOptions {
  int64_t axis = -1;       ///< feature axis: each of its indices has its own moments
  double momentum = 0.99;  ///< decay of the moving statistics per training step
  double epsilon = 1e-3;   ///< added to the variance
  bool center = true;      ///< whether to add `beta`
  bool scale = true;       ///< whether to scale by `gamma`
  InitializerHandle beta_initializer = "zeros";            ///< initializer of `beta`
  InitializerHandle gamma_initializer = "ones";            ///< initializer of `gamma`
  InitializerHandle moving_mean_initializer = "zeros";     ///< initializer of `moving_mean`
  InitializerHandle moving_variance_initializer = "ones";  ///< initializer of `moving_variance`
  RegularizerHandle beta_regularizer = {};                 ///< penalty on `beta`
  RegularizerHandle gamma_regularizer = {};                ///< penalty on `gamma`
  ConstraintHandle beta_constraint = {};                   ///< constraint on `beta`
  ConstraintHandle gamma_constraint = {};                  ///< constraint on `gamma`
  bool renorm = false;                                     ///< whether to use batch renormalization
  RenormClipping renorm_clipping = {};  ///< limits of the corrections; only with `renorm`
  double renorm_momentum = 0.99;        ///< decay of the statistics of `renorm`
  bool synchronized = false;            ///< no effect: moments are always those of the global batch
  LayoutSpec beta_layout = {};          ///< layout of `beta`; overrides the layout map
  LayoutSpec gamma_layout = {};         ///< layout of `gamma`; overrides the layout map
  LayoutSpec moving_mean_layout = {};   ///< layout of `moving_mean`; overrides the layout map
  LayoutSpec moving_variance_layout = {};  ///< layout of `moving_variance`; overrides layout maps
  std::string name = "";                   ///< first component of the weights' paths
  std::string dtype = "";                  ///< dtype policy (default: the global policy)
  bool trainable = true;                   ///< whether training changes the weights
};

/// y = (x - mean) / sqrt(variance + epsilon) · gamma + beta (keras.layers.BatchNormalization),
/// computed in at least float32 under any policy. In training, mean and (biased) variance are taken
/// over the global batch and all axes but `axis`, and the moving statistics become
/// momentum · moving + (1 - momentum) · moment. In inference, in a layer that is not trainable, and
/// for an empty batch, mean and variance are the moving statistics, which stay unchanged.
/// With `renorm`, training corrects the normalized values z to z · r + d; r and d, clipped and
/// treated as constants, map the batch's moments to running ones (arXiv 1702.03275).
///
/// Shape: (batch, …) -> (batch, …). The mask passes through. Throws ShapeError for an input that
/// lacks the axis, whose extent there is unknown, or whose rank or extent differs from when built.
/// Weights, each with one element per index of `axis`: gamma, beta and, not trainable, moving_mean,
/// moving_variance; with `renorm` also moving_stddev, renorm_mean, renorm_stddev.
/// Communication: each moment costs one all-reduce over the mesh dimensions that shard the reduced
/// axes, and its gradient another; the moving statistics cost nothing more if they are sharded like
/// the features of x. x keeps its layout if the weights are replicated or sharded like its
/// features. Weights without a layout take gamma's, or beta's without gamma; without either they
/// are replicated. config() omits layouts, which belong to a mesh.
///
///     BatchNormalization({.momentum = 0.9, .name = "norm"})
class BatchNormalization : public LayerHandle {
 public:
  /// Throws ConfigError unless rmin <= rmax and dmax >= 0, and for an unknown name.
  explicit BatchNormalization(const BatchNormalizationOptions& options = {});
};

}  // namespace tessera
