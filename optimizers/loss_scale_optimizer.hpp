#pragma once

#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of LossScaleOptimizer.
struct LossScaleOptimizerOptions {
  double initial_scale = 32768;         ///< initial loss scale, positive
  int64_t dynamic_growth_steps = 2000;  ///< finite steps after which the scale doubles, at least 1
  std::string name = "";  ///< optimizer name; slots' paths begin with the inner optimizer's
};

/// Dynamic loss scaling for training in float16 (keras.optimizers.LossScaleOptimizer): multiplies
/// the loss by a scale and passes the gradients, divided by it, to the inner optimizer, whose
/// loss_scale_factor is cleared. A step with a non-finite gradient on any device is skipped and
/// halves the scale. Rates and iterations are those of the inner optimizer; steps() also counts
/// skipped steps. On GPUs no step waits for the finiteness check: the inner optimizer's rate and
/// iterations take a skipped step into account two steps later.
///
/// Communication: one all-reduce a step for all gradients that are sharded over the same mesh
/// dimensions, to check whether they are finite. Throws ConfigError unless the options are
/// positive.
///
///     LossScaleOptimizer(Adam(1e-3))
class LossScaleOptimizer : public OptimizerHandle {
 public:
  explicit LossScaleOptimizer(OptimizerHandle inner_optimizer,
                              LossScaleOptimizerOptions options = {});

  /// Returns the optimizer that applies the updates.
  OptimizerHandle inner_optimizer() const;
  /// Returns the scale of the next step's loss.
  double dynamic_scale() const;
};

}  // namespace tessera
