#pragma once

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct ActivityRegularizationOptions {
  double l1 = 0;
  double l2 = 0;
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// The input itself, with the penalty (l1 Σ|x| + l2 Σx²) / batch on it
/// (keras.layers.ActivityRegularization). Shape, layout and mask stay; the penalty of a sharded
/// input is pending.
class ActivityRegularizationLayer final : public Layer {
 public:
  explicit ActivityRegularizationLayer(const ActivityRegularizationOptions& options);
  std::string class_name() const override { return "ActivityRegularization"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  double l1_;
  double l2_;
  RegularizerHandle penalty_;
};

class ActivityRegularization : public LayerHandle {
 public:
  /// Throws ConfigError for a factor that is negative or not finite.
  explicit ActivityRegularization(const ActivityRegularizationOptions& options = {})
      : LayerHandle(std::make_shared<ActivityRegularizationLayer>(options)) {}
  static ActivityRegularization from_config(JsonObject& config);
};

}  // namespace tessera
