#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/training/callbacks/internal/callback_list.hpp>
#include <tessera/framework/training/internal/fit_data.hpp>
#include <tessera/framework/training/internal/step_runner.hpp>
#include <tessera/framework/training/internal/training_state.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera::detail {

/// Runs the epochs of a fit and their validations, from the position that a callback may set.
class FitLoop {
 public:
  FitLoop(Trainer& trainer, TrainingState& state, const FitData& data, const FitOptions& options,
          const CallbackList& callbacks);
  /// Runs all epochs. Collective. Throws Interrupted if a signal asks any process to leave, after
  /// callbacks could save; StateError for a loss or gradients that are not finite.
  void run();

 private:
  void begin();
  void run_epochs();
  void train_epoch(int64_t epoch);
  void train_batches(int64_t epoch);
  void train_with_executor();
  std::optional<int64_t> batches_in_pass() const;
  /// Validates, calls on_epoch_end of the callbacks, and appends the logs to the history.
  void end_epoch();
  Logs validate();

  Trainer& trainer_;
  TrainingState& state_;
  const FitData& data_;
  const FitOptions& options_;
  const CallbackList& callbacks_;
  StepRunner steps_;
};

/// Returns loss and metrics over the batches of a loader; warns if they are fewer than the user
/// `asked_for`. Collective.
Logs evaluated(const std::string& caller, StepRunner& steps, TrainingState& state,
               BatchLoader& loader, const CallbackList& callbacks,
               const std::optional<int64_t>& asked_for);

}  // namespace tessera::detail
