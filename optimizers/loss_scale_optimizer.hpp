#pragma once

#include <memory>

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

class LossScaling;

struct LossScaleOptimizerOptions {
  double initial_scale = 32768;
  int64_t dynamic_growth_steps = 2000;  ///< finite steps after which the scale doubles
  std::string name = "";                ///< slots have the inner optimizer's
};

/// Multiplies the loss by a scale that follows what the gradients can hold, for training in float16
/// (keras.optimizers.LossScaleOptimizer): a step with a gradient that is not finite, on any device,
/// changes nothing but the scale, which halves. The inner optimizer gets the gradients divided by
/// the scale, and loses its own loss_scale_factor. Rates and iterations are those of the inner
/// optimizer; steps() counts skipped ones too. Throws ConfigError unless the options are positive.
class LossScaleOptimizer : public OptimizerHandle {
 public:
  explicit LossScaleOptimizer(OptimizerHandle inner_optimizer,
                              LossScaleOptimizerOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static LossScaleOptimizer from_config(JsonObject& config);

  OptimizerHandle inner_optimizer() const;
  /// What the next step's loss is multiplied by.
  double dynamic_scale() const;

 private:
  explicit LossScaleOptimizer(const std::shared_ptr<LossScaling>& made);
  std::shared_ptr<LossScaling> scaling_;
};

}  // namespace tessera
