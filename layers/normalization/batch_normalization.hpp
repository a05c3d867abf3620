#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Limits of batch renormalization's corrections (Keras' dict); absent: none.
struct RenormClipping {
  std::optional<double> rmin = std::nullopt;  ///< least factor r
  std::optional<double> rmax = std::nullopt;  ///< largest factor r
  std::optional<double> dmax = std::nullopt;  ///< largest offset |d|
};

/// The options of BatchNormalization.
struct BatchNormalizationOptions {
  int64_t axis = -1;       ///< axis whose every index has moments of its own; the features'
  double momentum = 0.99;  ///< what the moving statistics keep of themselves in a training step
  double epsilon = 1e-3;   ///< added to the variance
  bool center = true;      ///< adds `beta`
  bool scale = true;       ///< multiplies by `gamma`
  InitializerHandle beta_initializer = "zeros";            ///< first values of `beta`
  InitializerHandle gamma_initializer = "ones";            ///< first values of `gamma`
  InitializerHandle moving_mean_initializer = "zeros";     ///< first values of `moving_mean`
  InitializerHandle moving_variance_initializer = "ones";  ///< first values of `moving_variance`
  RegularizerHandle beta_regularizer = {};                 ///< penalty on `beta`
  RegularizerHandle gamma_regularizer = {};                ///< penalty on `gamma`
  ConstraintHandle beta_constraint = {};                   ///< what `beta` is brought back to
  ConstraintHandle gamma_constraint = {};                  ///< what `gamma` is brought back to
  bool renorm = false;                                     ///< batch renormalization
  RenormClipping renorm_clipping = {};     ///< limits of its corrections; only with `renorm`
  double renorm_momentum = 0.99;           ///< what the statistics of `renorm` keep of themselves
  bool synchronized = false;               ///< changes nothing: moments are of the global batch
  LayoutSpec beta_layout = {};             ///< layout of `beta`, over any layout map
  LayoutSpec gamma_layout = {};            ///< layout of `gamma`, over any layout map
  LayoutSpec moving_mean_layout = {};      ///< layout of `moving_mean`, over any layout map
  LayoutSpec moving_variance_layout = {};  ///< layout of `moving_variance`, over any layout map
  std::string name = "";                   ///< first part of the weights' paths
  std::string dtype = "";                  ///< policy; the default one if empty
  bool trainable = true;                   ///< whether training changes the weights
};

/// y = (x - mean) / sqrt(variance + epsilon) · gamma + beta (keras.layers.BatchNormalization), at
/// least in float32 whatever the policy. In training, mean and variance (biased) are those of the
/// global batch over all axes but `axis`, and the moving statistics become
/// momentum · moving + (1 - momentum) · moment. Otherwise, in a layer that is not trainable, and
/// for a batch without rows, they are the moving statistics, which then stay.
/// With `renorm`, training corrects the normalized values z to z · r + d, where r and d, taken as
/// constants and clipped, bring the batch's moments to running ones (arXiv 1702.03275).
///
/// Shape: (batch, …) -> (batch, …). The mask stays. Throws ShapeError for an input that lacks the
/// axis, does not tell its extent, or has another rank or extent than when built.
/// Weights, a number for each index of `axis`: gamma, beta and, not trainable, moving_mean,
/// moving_variance; with `renorm` moving_stddev, renorm_mean, renorm_stddev.
/// Communication: over the mesh dimensions that cut the reduced axes each moment costs one
/// all-reduce of its features, and its gradient another; the moving statistics cost nothing more
/// where they lie as the features of x do. x keeps its layout where weights are replicated or lie
/// as its features do. Weights that nothing places lie as gamma does, or beta; replicated without
/// either. config() holds no layouts: they belong to a mesh.
///
///     BatchNormalization({.momentum = 0.9, .name = "norm"})
class BatchNormalization : public LayerHandle {
 public:
  /// Throws ConfigError unless rmin <= rmax and dmax >= 0, and for an unknown name.
  explicit BatchNormalization(const BatchNormalizationOptions& options = {});
};

}  // namespace tessera
