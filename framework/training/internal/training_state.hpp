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

/// How far a fit has come.
struct FitProgress {
  FitPosition position;
  History history;
  Logs epoch_logs;          ///< values of the last epoch
  bool epoch_ends = false;  ///< whether epoch_logs are to go into history yet
};

/// What compile() leaves in a model, and what runs of fit, evaluate and predict work on.
struct TrainingState {
  TrainingState(const CompileOptions& given, const LayoutMap& lie, const Layer& model)
      : options(given), layouts(lie), metrics(given, model), exchange(lie.mesh()) {}

  CompileOptions options;
  OptimizerHandle given_optimizer;  ///< what compile() may have put a LossScaleOptimizer around
  LayoutMap layouts;
  bool step_checked = false;  ///< whether a first step has shown what is wrong with the model
  bool placed = false;        ///< whether weights and slots lie where the layouts say
  int64_t steps_begun = 0;    ///< steps of training, tests and predictions begun
  MetricTracker metrics;
  StepExchange exchange;
  std::shared_ptr<Arena> step_memory = make_step_buffer();
  StepCapture capture{step_memory}, test_capture{step_memory}, predict_capture{step_memory};
  FitProgress progress;
  LossQueue losses;  ///< of steps that metrics and history do not know yet
  /// Whether fit runs and ends where loss or gradients are infinite or no numbers.
  bool must_be_finite = false, gradients_must_be_finite = false;
  std::shared_ptr<StepExecutor> executor;  ///< null: this process makes the steps of fit

  const OptimizerHandle& optimizer() const { return options.optimizer; }
};

}  // namespace tessera::detail
