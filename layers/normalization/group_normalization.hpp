#pragma once

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct GroupNormalizationOptions {
  int64_t groups = 32;  ///< -1: one for each channel
  int64_t axis = -1;
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

/// y = (x - mean) / sqrt(variance + epsilon) · gamma + beta, mean and biased variance of each row
/// and each of `groups` equal parts of `axis`, over all other axes
/// (keras.layers.GroupNormalization, arXiv 1803.08494), at least in float32 whatever the policy.
/// Weights: gamma and beta, a number for each index of `axis`. Layouts: x keeps its own where no
/// shard border cuts a group. Over the mesh dimensions that cut a reduced axis each moment costs
/// one all-reduce of its shape, and its gradient another.
class GroupNormalizationLayer final : public Layer {
 public:
  explicit GroupNormalizationLayer(const GroupNormalizationOptions& options);
  std::string class_name() const override { return "GroupNormalization"; }
  Json config() const override;
  /// Throws ShapeError for an input that lacks the axis, does not tell its extent, has another than
  /// when built, or one that the groups do not divide.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  GroupNormalizationOptions options_;
  Variable gamma_, beta_;
};

class GroupNormalization : public LayerHandle {
 public:
  /// Throws ConfigError unless groups is -1 or positive.
  explicit GroupNormalization(const GroupNormalizationOptions& options = {})
      : LayerHandle(std::make_shared<GroupNormalizationLayer>(options)) {}
  static GroupNormalization from_config(JsonObject& config);
};

}  // namespace tessera
