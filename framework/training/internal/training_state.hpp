#pragma once

#include <cstdint>
#include <memory>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/training/capture/step_capture.hpp>
#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/internal/loss_queue.hpp>
#include <tessera/framework/training/internal/metric_tracker.hpp>
#include <tessera/framework/training/internal/step_exchange.hpp>
#include <tessera/framework/training/internal/step_executor.hpp>
#include <tessera/framework/training/logs.hpp>
#include <tessera/framework/training/options.hpp>

namespace tessera::detail {

/// Progress of a fit.
struct FitProgress {
  FitPosition position;
  History history;
  Logs epoch_logs;          ///< values of the last epoch
  bool epoch_ends = false;  ///< whether epoch_logs are complete, but not in history yet
};

/// State of a compiled model, which runs of fit, evaluate and predict share.
struct TrainingState {
  TrainingState(const CompileOptions& compiled, const LayoutMap& map, const Layer& model)
      : options(compiled), layouts(map), metrics(compiled, model), exchange(map.mesh()) {}

  CompileOptions options;
  OptimizerHandle user_optimizer;  ///< compile()'s, before a LossScaleOptimizer was put around it
  LayoutMap layouts;
  bool step_checked = false;      ///< whether the checks of the first step were made
  bool placed = false;            ///< whether weights and slots have their layouts
  bool told_untrainable = false;  ///< whether the last step had no trainable weight
  int64_t steps_begun = 0;        ///< steps of training, tests and predictions begun
  MetricTracker metrics;
  StepExchange exchange;
  std::shared_ptr<Arena> step_memory = make_arena();
  StepCapture capture{step_memory}, test_capture{step_memory}, predict_capture{step_memory};
  FitProgress progress;
  LossQueue losses;  ///< losses that are not in metrics and history yet
  /// Whether fit runs and throws for a loss, or for gradients, that are not finite.
  bool must_be_finite = false, gradients_must_be_finite = false;
  std::shared_ptr<StepExecutor> executor;  ///< null: this process runs the steps of fit

  const OptimizerHandle& optimizer() const { return options.optimizer; }
};

}  // namespace tessera::detail
