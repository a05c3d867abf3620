#pragma once

#include <functional>
#include <string>

#include <tessera/framework/training/batch_loader.hpp>
#include <tessera/framework/training/callbacks/internal/callback_list.hpp>
#include <tessera/framework/training/internal/training_state.hpp>

namespace tessera::detail {

/// Runs through the batches of an epoch, a validation or a prediction: reads, tells the callbacks,
/// has the steps made, and agrees with the other processes between two of them.
class BatchLoop {
 public:
  /// `caller` begins errors.
  BatchLoop(std::string caller, Phase phase, TrainingState& state, const CallbackList& callbacks)
      : caller_(std::move(caller)), phase_(phase), state_(state), callbacks_(callbacks) {}

  /// Takes every batch through `step`; ends early if training is to stop. Throws Interrupted, on
  /// every process after the same step, if a signal asks one of them to leave. Collective.
  void run(BatchLoader& loader, const std::function<void(Examples&&, int64_t step)>& step);

 private:
  std::optional<Examples> next_batch(BatchLoader& loader, int64_t step,
                                     const std::function<void()>& before);
  void raise_non_finite(StepStatus& own) const;
  void check_gradients(int64_t step);

  std::string caller_;
  Phase phase_;
  TrainingState& state_;
  const CallbackList& callbacks_;
};

}  // namespace tessera::detail
