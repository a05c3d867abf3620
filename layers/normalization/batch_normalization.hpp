#pragma once

#include <optional>
#include <utility>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Limits of batch renormalization's corrections (Keras' dict); absent: none.
struct RenormClipping {
  std::optional<double> rmin = std::nullopt;
  std::optional<double> rmax = std::nullopt;
  std::optional<double> dmax = std::nullopt;
};

struct BatchNormalizationOptions {
  int64_t axis = -1;       ///< whose every index has moments of its own; the features'
  double momentum = 0.99;  ///< what the moving statistics keep of themselves in a training step
  double epsilon = 1e-3;   ///< added to the variance
  bool center = true;      ///< adds beta
  bool scale = true;       ///< multiplies by gamma
  InitializerHandle beta_initializer = "zeros";
  InitializerHandle gamma_initializer = "ones";
  InitializerHandle moving_mean_initializer = "zeros";
  InitializerHandle moving_variance_initializer = "ones";
  RegularizerHandle beta_regularizer = {};
  RegularizerHandle gamma_regularizer = {};
  ConstraintHandle beta_constraint = {};
  ConstraintHandle gamma_constraint = {};
  bool renorm = false;                  ///< batch renormalization
  RenormClipping renorm_clipping = {};  ///< only with `renorm`
  double renorm_momentum = 0.99;        ///< what the statistics of `renorm` keep of themselves
  bool synchronized = false;  ///< changes nothing: the moments are always of the global batch
  LayoutSpec beta_layout = {};
  LayoutSpec gamma_layout = {};
  LayoutSpec moving_mean_layout = {};
  LayoutSpec moving_variance_layout = {};
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// y = (x - mean) / sqrt(variance + epsilon) · gamma + beta (keras.layers.BatchNormalization), at
/// least in float32 whatever the policy. In training, mean and variance (biased) are those of the
/// global batch over all axes but `axis`, and the moving statistics become
/// momentum · moving + (1 - momentum) · moment. Otherwise, in a layer that is not trainable, and
/// for a batch without rows, they are the moving statistics, which then stay.
/// With `renorm`, training corrects the normalized values z to z · r + d, where r and d, taken as
/// constants and clipped, bring the batch's moments to running ones (arXiv 1702.03275).
/// Weights of one number for each index of `axis`: gamma, beta and, not trainable, moving_mean,
/// moving_variance; with `renorm` moving_stddev, renorm_mean, renorm_stddev.
/// Layouts: x keeps its own where weights are replicated or lie as its features do. Weights that
/// nothing places lie as gamma does, or beta; replicated without either. Over the mesh dimensions
/// that cut the reduced axes each moment costs one all-reduce of its features, and its gradient
/// another; the moving statistics cost nothing more where they lie as the features of x do.
class BatchNormalizationLayer final : public Layer {
 public:
  explicit BatchNormalizationLayer(const BatchNormalizationOptions& options);
  std::string class_name() const override { return "BatchNormalization"; }
  Json config() const override;
  /// Throws ShapeError for an input that lacks the axis, does not tell its extent, or has another
  /// rank or extent than when built.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  void place_weights(const LayoutMap& layouts) override;

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  /// Sets a statistic, wherever it lies.
  void put(Variable& statistic, const DTensor& value) const;
  /// A moving statistic a step further; its value.
  DTensor follow(Variable& moving, const DTensor& moment, double momentum) const;
  void follow_moments(const DTensor& mean, const DTensor& variance);
  /// r and d of batch renormalization; its statistics go a step further.
  std::pair<DTensor, DTensor> renormalize(const DTensor& mean, const DTensor& variance);

  BatchNormalizationOptions options_;
  Variable gamma_, beta_, moving_mean_, moving_variance_;
  Variable moving_stddev_, renorm_mean_, renorm_stddev_;  ///< with `renorm`
};

class BatchNormalization : public LayerHandle {
 public:
  /// Throws ConfigError unless rmin <= rmax and dmax >= 0.
  explicit BatchNormalization(const BatchNormalizationOptions& options = {})
      : LayerHandle(std::make_shared<BatchNormalizationLayer>(options)) {}
  static BatchNormalization from_config(JsonObject& config);
};

}  // namespace tessera
