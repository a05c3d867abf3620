#pragma once

#include <cstdint>
#include <memory>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/training/capture/step_capture.hpp>
#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/internal/first_step.hpp>
#include <tessera/framework/training/internal/loss_queue.hpp>
#include <tessera/framework/training/internal/metric_tracker.hpp>
#include <tessera/framework/training/internal/non_finite.hpp>
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
  bool placed = false;  ///< whether weights and slots have their layouts
  FirstStep first_step;
  MetricTracker metrics;
  LossQueue losses;  ///< losses that are not in metrics and history yet
  StepExchange exchange;
  StepCaptures captures;
  FiniteChecks finite;
  FitProgress progress;
  std::shared_ptr<StepExecutor> executor = step_executor();

  /// Drops the values of earlier steps.
  void reset_values() {
    losses.clear();
    metrics.reset();
  }
  const OptimizerHandle& optimizer() const { return options.optimizer; }
};

}  // namespace tessera::detail
