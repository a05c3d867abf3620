#pragma once

#include <memory>
#include <optional>
#include <string>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/training/callbacks/internal/callback_list.hpp>
#include <tessera/framework/training/history.hpp>

namespace tessera {
class Trainer;
struct FitOptions;
}  // namespace tessera

namespace tessera::detail {

struct FitData;
struct TrainingState;

/// A fit whose steps run.
struct FitRun {
  Trainer& trainer;
  TrainingState& state;
  const FitData& data;
  const FitOptions& options;
  const CallbackList& callbacks;
  double flops_per_row = 0;  ///< for FitOptions::peak_flops
};

/// Runs the steps of fit: in this process, or all processes of the mesh together (LocalSteps), or
/// elsewhere (RemoteSteps). compile() takes the executor of the innermost StepExecutorScope, or
/// LocalSteps without one.
class StepExecutor {
 public:
  virtual ~StepExecutor() = default;

  /// Works for another process's fit until it is over and returns its history. On the leading
  /// process, returns nothing at once.
  virtual std::optional<History> work_for_leader(Trainer&, const FitData&, const FitOptions&) {
    return std::nullopt;
  }
  /// Begins training with this process's weights and optimizer state.
  virtual void begin(const FitRun&) {}
  /// Runs the training steps of the epoch at the fit's position, which it moves on, until the
  /// epoch, its pass over the data, or training ends; calls the callbacks, and adds the losses to
  /// metrics and history. Collective. Throws Interrupted if a signal asks any process to leave.
  virtual void train(const FitRun& run) = 0;
  /// Runs the test steps of a validation in the same way; adds their values to the metrics.
  virtual void test(const FitRun& run) = 0;
  /// Ends the fit, which resulted in this history.
  virtual void end(const History&) {}
  /// Ends the fit after an error or a signal.
  virtual void fail(const std::string&) noexcept {}
};

/// While alive, `executor` runs the steps of models compiled on this thread.
class StepExecutorScope {
 public:
  explicit StepExecutorScope(std::shared_ptr<StepExecutor> executor);

 private:
  ScopedValue<std::shared_ptr<StepExecutor>> executor_;
};
/// Returns the executor of the innermost StepExecutorScope, or LocalSteps.
std::shared_ptr<StepExecutor> step_executor();

}  // namespace tessera::detail
