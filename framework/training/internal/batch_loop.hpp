#pragma once

#include <optional>
#include <string>
#include <utility>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/training/callbacks/internal/callback_list.hpp>
#include <tessera/framework/training/internal/training_state.hpp>

namespace tessera::detail {

/// Warns, on the first process, if the data ended after `done` of the `steps` that the user asked
/// for by `option`.
void warn_of_short_data(const Mesh& mesh, const std::string& caller, const std::string& option,
                        int64_t done, const std::optional<int64_t>& steps);

/// Iterates over the batches of an epoch, a validation or a prediction: reads them, calls the
/// callbacks, and agrees with the other processes between two steps. The caller runs the steps:
///
///     BatchLoop batches("fit", Phase::train, state, callbacks, loader, steps);
///     while (std::optional<Examples> examples = batches.next()) train(std::move(*examples));
class BatchLoop {
 public:
  /// Errors begin with `caller`. `steps`: the number that the user asked for; a warning tells if
  /// the data end before.
  BatchLoop(std::string caller, Phase phase, TrainingState& state, const CallbackList& callbacks,
            BatchLoader& loader, std::optional<int64_t> steps, int64_t first_step = 0)
      : caller_(std::move(caller)),
        phase_(phase),
        state_(state),
        callbacks_(callbacks),
        loader_(loader),
        steps_(steps),
        step_(first_step) {}

  /// Ends the previous step, if any, and begins the next one. Returns its examples, or nothing if
  /// the data have ended on any process or training is to stop. Collective. Throws Interrupted if a
  /// signal asks a process to leave, StateError or ShapeError, on every process after the same
  /// step.
  std::optional<Examples> next();
  /// Returns the number of the current step.
  int64_t step() const { return step_; }
  /// Returns batch_signature() of the current examples.
  uint64_t signature() const { return signature_; }

 private:
  bool all_have_more(const StepStatus& status, const std::optional<Examples>& examples) const;
  void warn_of_early_end() const;
  void raise_non_finite(StepStatus& own, bool all) const;
  void check_gradients();

  std::string caller_;
  Phase phase_;
  TrainingState& state_;
  const CallbackList& callbacks_;
  BatchLoader& loader_;
  std::optional<int64_t> steps_;
  int64_t step_;
  int64_t rows_ = 0;  ///< rows of the current step
  uint64_t signature_ = 0;
  std::optional<ProfileSpan> step_span_;  ///< from the step's beginning to the next one's
};

}  // namespace tessera::detail
