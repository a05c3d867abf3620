#pragma once

#include <string>

#include <tessera/framework/training/callbacks/internal/callback_list.hpp>
#include <tessera/framework/training/internal/fit_data.hpp>
#include <tessera/framework/training/internal/step_runner.hpp>
#include <tessera/framework/training/internal/training_state.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera::detail {

/// All epochs of a fit, with their validations, from where a callback says that it goes on.
class FitLoop {
 public:
  FitLoop(Trainer& trainer, TrainingState& state, const FitData& data, const FitOptions& options,
          const CallbackList& callbacks);
  /// Collective. Throws Interrupted, after callbacks had the chance to save, if a signal asks any
  /// process to leave; StateError for a loss or gradients that are not finite.
  void run();

 private:
  void begin();
  void run_epochs();
  void train_epoch(int64_t epoch);
  /// Validates, tells callbacks that the epoch ends, and keeps what it gave.
  void end_epoch();
  Logs validate();

  Trainer& trainer_;
  TrainingState& state_;
  const FitData& data_;
  const FitOptions& options_;
  const CallbackList& callbacks_;
  StepRunner steps_;
};

/// Loss and metrics over the batches of a loader. Collective.
Logs evaluated(const std::string& caller, StepRunner& steps, TrainingState& state,
               BatchLoader& loader, const CallbackList& callbacks);

}  // namespace tessera::detail
