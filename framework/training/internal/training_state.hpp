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

class ElasticFit;
class PipelinedSteps;
class RandomStream;

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
  std::shared_ptr<PipelinedSteps> pipeline = {};  ///< if the model is trained in stages
  bool ran_own_step = false;  ///< whether Trainer's train_step() has run, and not a subclass's only
  FiniteChecks finite;
  FitProgress progress;
  std::shared_ptr<StepExecutor> executor = step_executor();
  /// Random numbers of the current training step; null outside of it.
  std::shared_ptr<RandomStream> step_random;
  /// The data of a fit that places the weights before its first step; null otherwise.
  const DatasetHandle* building_data = nullptr;
  int64_t own_steps = 0;          ///< training steps since compile()
  ElasticFit* elastic = nullptr;  ///< a running fit whose processes come and go; null otherwise
  StepCapture calls = StepCapture(make_arena());  ///< see RecordedCalls

  /// Drops the values of earlier steps.
  void reset_values() {
    losses.clear();
    metrics.reset();
  }
  const OptimizerHandle& optimizer() const { return options.optimizer; }
  /// The number of the next training step, which random draws follow: the optimizer's, or, of a
  /// model whose train_step() has its own optimizers, counted since compile().
  int64_t steps() const { return optimizer() ? optimizer()->steps() : own_steps; }
};

}  // namespace tessera::detail
