#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <tessera/framework/training/callbacks/internal/callback_list.hpp>
#include <tessera/framework/training/internal/fit_data.hpp>
#include <tessera/framework/training/internal/step_executor.hpp>
#include <tessera/framework/training/internal/training_state.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera::detail {

/// Runs the epochs of a fit and their validations, from the position that a callback may set.
class FitLoop {
 public:
  explicit FitLoop(const FitRun& run) : run_(run), state_(run.state), steps_(run.state.executor) {}
  /// Runs all epochs. Collective. Throws Interrupted if a signal asks any process to leave, after
  /// callbacks could save; StateError for a loss or gradients that are not finite.
  void run();

 private:
  void begin();
  void run_epochs();
  /// Does what run() does while processes of an elastic run come and go.
  void run_elastic(ElasticFit& elastic);
  void train_epoch(int64_t epoch);
  std::optional<int64_t> batches_in_pass() const;
  /// Validates, calls on_epoch_end of the callbacks, and appends the logs to the history of an
  /// epoch whose training took some seconds.
  void end_epoch(double seconds);
  void add_rates(double seconds, Logs& logs) const;

  const FitRun run_;
  TrainingState& state_;
  const std::shared_ptr<StepExecutor> steps_;
};

/// Returns loss and metrics of the test steps that `pass` runs; calls on_test_begin and on_test_end
/// of the callbacks. Collective.
Logs evaluated(TrainingState& state, const CallbackList& callbacks,
               const std::function<void()>& pass);

}  // namespace tessera::detail
