#pragma once

#include <optional>
#include <string>
#include <utility>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/training/callbacks/internal/callback_list.hpp>
#include <tessera/framework/training/internal/training_state.hpp>

namespace tessera::detail {

/// Runs through the batches of an epoch, a validation or a prediction: reads, tells the callbacks,
/// and agrees with the other processes between two steps, which the caller makes:
///
///     BatchLoop batches("fit", Phase::train, state, callbacks, loader);
///     while (std::optional<Examples> examples = batches.next()) train(std::move(*examples));
class BatchLoop {
 public:
  /// `caller` begins errors.
  BatchLoop(std::string caller, Phase phase, TrainingState& state, const CallbackList& callbacks,
            BatchLoader& loader)
      : caller_(std::move(caller)),
        phase_(phase),
        state_(state),
        callbacks_(callbacks),
        loader_(loader),
        step_(loader.first_step()) {}

  /// Ends the step before, if there was one, and begins the next: its examples, or nothing where
  /// the data have ended on any process or training is to stop. Collective. Throws Interrupted, if
  /// a signal asks a process to leave, StateError or ShapeError, on every process after the same
  /// step.
  std::optional<Examples> next();
  /// Number of the step that has begun.
  int64_t step() const { return step_; }
  /// The form of its examples, as hash_of() gives it.
  uint64_t form() const { return form_; }

 private:
  bool all_have_more(const StepStatus& status, const std::string& form) const;
  void raise_non_finite(StepStatus& own, bool all) const;
  void check_gradients();

  std::string caller_;
  Phase phase_;
  TrainingState& state_;
  const CallbackList& callbacks_;
  BatchLoader& loader_;
  int64_t step_;
  int64_t rows_ = 0;  ///< of the step that has begun
  uint64_t form_ = 0;
  std::optional<ProfileSpan> begun_;  ///< from the step's begin until the next one's examples
};

}  // namespace tessera::detail
