#pragma once

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct UnitNormalizationOptions {
  std::vector<int64_t> axis = {-1};  ///< of the vectors; several: of matrices and so on
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// x / max(‖x‖, 1e-12), vectors along the axes (keras.layers.UnitNormalization). Shape, layout and
/// mask stay; where a mesh dimension cuts a vector, one all-reduce of the squared norms.
class UnitNormalizationLayer final : public Layer {
 public:
  explicit UnitNormalizationLayer(const UnitNormalizationOptions& options);
  std::string class_name() const override { return "UnitNormalization"; }
  Json config() const override;
  /// Throws ShapeError for an axis that the input has not.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  std::vector<int64_t> axis_;
};

class UnitNormalization : public LayerHandle {
 public:
  /// Throws ConfigError for no axes.
  explicit UnitNormalization(const UnitNormalizationOptions& options = {})
      : LayerHandle(std::make_shared<UnitNormalizationLayer>(options)) {}
  static UnitNormalization from_config(JsonObject& config);
};

}  // namespace tessera
