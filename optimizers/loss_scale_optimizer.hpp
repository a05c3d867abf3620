#pragma once

#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of LossScaleOptimizer.
struct LossScaleOptimizerOptions {
  double initial_scale = 32768;         ///< what the first loss is multiplied by, positive
  int64_t dynamic_growth_steps = 2000;  ///< finite steps after which the scale doubles, at least 1
  std::string name = "";  ///< first part of the slots' paths; the inner optimizer has the slots
};

/// Multiplies the loss by a scale that follows what the gradients can hold, for training in float16
/// (keras.optimizers.LossScaleOptimizer): a step with a gradient that is not finite, on any device,
/// changes nothing but the scale, which halves. The inner optimizer gets the gradients divided by
/// the scale, and loses its own loss_scale_factor. Rates and iterations are those of the inner
/// optimizer; steps() counts skipped ones too. On GPUs no step waits for that: the inner
/// optimizer's rate and iterations learn of a skipped step two steps later.
///
/// Communication: one all-reduce a step for all gradients that are cut alike, to see whether they
/// are finite. Throws ConfigError unless the options are positive.
///
///     LossScaleOptimizer(Adam(1e-3))
class LossScaleOptimizer : public OptimizerHandle {
 public:
  explicit LossScaleOptimizer(OptimizerHandle inner_optimizer,
                              LossScaleOptimizerOptions options = {});

  /// The optimizer that does the updates.
  OptimizerHandle inner_optimizer() const;
  /// What the next step's loss is multiplied by.
  double dynamic_scale() const;
};

}  // namespace tessera
