#pragma once

#include <vector>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct LayerNormalizationOptions {
  std::vector<int64_t> axis = {-1};  ///< axes that are normalized together
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  InitializerHandle beta_initializer = "zeros";
  InitializerHandle gamma_initializer = "ones";
  RegularizerHandle beta_regularizer = {};
  RegularizerHandle gamma_regularizer = {};
  ConstraintHandle beta_constraint = {};
  ConstraintHandle gamma_constraint = {};
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// y = (x - mean) / sqrt(variance + epsilon) · gamma + beta, mean and biased variance over `axis`
/// at each index of the others (keras.layers.LayerNormalization), at least in float32 whatever the
/// policy. Weights: gamma and beta, of the extents of `axis` in ascending order.
/// Layouts: x keeps its own. Over the mesh dimensions that cut a normalized axis each moment costs
/// one all-reduce of its shape, and its gradient another.
class LayerNormalizationLayer final : public Layer {
 public:
  explicit LayerNormalizationLayer(const LayerNormalizationOptions& options);
  std::string class_name() const override { return "LayerNormalization"; }
  Json config() const override;
  /// Throws ShapeError for an input that lacks an axis, does not tell its extent, or has another
  /// than when built.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  LayerNormalizationOptions options_;
  Variable gamma_, beta_;
};

class LayerNormalization : public LayerHandle {
 public:
  /// Throws ConfigError for no axis.
  explicit LayerNormalization(const LayerNormalizationOptions& options = {})
      : LayerHandle(std::make_shared<LayerNormalizationLayer>(options)) {}
  static LayerNormalization from_config(JsonObject& config);
};

}  // namespace tessera
