#pragma once

#include <vector>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct RMSNormalizationOptions {
  std::vector<int64_t> axis = {-1};  ///< axes that are normalized together
  double epsilon = 1e-6;
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// y = x / sqrt(mean(x²) + epsilon) · scale, the mean over `axis` (keras.layers.RMSNormalization,
/// arXiv 1910.07467), at least in float32 whatever the policy. Weight: scale, of the extents of
/// `axis` in ascending order. Layouts: x keeps its own; over the mesh dimensions that cut a
/// normalized axis the mean costs one all-reduce of its shape, and its gradient another.
class RMSNormalizationLayer final : public Layer {
 public:
  explicit RMSNormalizationLayer(const RMSNormalizationOptions& options);
  std::string class_name() const override { return "RMSNormalization"; }
  Json config() const override;
  /// Throws ShapeError for an input that lacks an axis, does not tell its extent, or has another
  /// than when built.
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  RMSNormalizationOptions options_;
  Variable scale_;
};

class RMSNormalization : public LayerHandle {
 public:
  /// Throws ConfigError for no axis.
  explicit RMSNormalization(const RMSNormalizationOptions& options = {})
      : LayerHandle(std::make_shared<RMSNormalizationLayer>(options)) {}
  static RMSNormalization from_config(JsonObject& config);
};

}  // namespace tessera
