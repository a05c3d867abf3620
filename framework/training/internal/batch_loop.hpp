#pragma once

#include <optional>
#include <string>
#include <utility>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/training/callbacks/internal/callback_list.hpp>
#include <tessera/framework/training/internal/training_state.hpp>

namespace tessera::detail {

/// Iterates over the batches of an epoch, a validation or a prediction: reads them, calls the
/// callbacks, and agrees with the other processes between two steps. The caller runs the steps:
///
///     BatchLoop batches("fit", Phase::train, state, callbacks, loader);
///     while (std::optional<Examples> examples = batches.next()) train(std::move(*examples));
class BatchLoop {
 public:
  /// Errors begin with `caller`.
  BatchLoop(std::string caller, Phase phase, TrainingState& state, const CallbackList& callbacks,
            BatchLoader& loader)
      : caller_(std::move(caller)),
        phase_(phase),
        state_(state),
        callbacks_(callbacks),
        loader_(loader),
        step_(loader.first_step()) {}

  /// Ends the previous step, if any, and begins the next one. Returns its examples, or nothing if
  /// the data have ended on any process or training is to stop. Collective. Throws Interrupted if a
  /// signal asks a process to leave, StateError or ShapeError, on every process after the same
  /// step.
  std::optional<Examples> next();
  /// Returns the number of the current step.
  int64_t step() const { return step_; }
  /// Returns the hash of the current examples' signature, from hash_of().
  uint64_t signature() const { return signature_; }

 private:
  bool all_have_more(const StepStatus& status, const std::string& signature) const;
  void raise_non_finite(StepStatus& own, bool all) const;
  void check_gradients();

  std::string caller_;
  Phase phase_;
  TrainingState& state_;
  const CallbackList& callbacks_;
  BatchLoader& loader_;
  int64_t step_;
  int64_t rows_ = 0;  ///< rows of the current step
  uint64_t signature_ = 0;
  std::optional<ProfileSpan> step_span_;  ///< from the step's beginning to the next one's
};

}  // namespace tessera::detail
