#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/phase.hpp>

namespace tessera {
class Model;
struct FitOptions;
}  // namespace tessera

namespace tessera::detail {

struct FitData;

/// What one step adds to loss and metrics.
struct StepTotals {
  /// Sum of the loss over rows, and the rows.
  double loss = 0;
  int64_t rows = 0;
  struct Of {
    std::string name;            ///< name in the logs
    std::vector<double> totals;  ///< what Metric::totals() gives
    double value = 0;            ///< value of this step alone
  };
  std::vector<Of> metrics = {};
};

/// Steps [first, last) of an epoch, or of a validation.
struct StepRange {
  Phase phase = Phase::train;
  int64_t epoch = 0;
  int64_t first = 0, last = 0;
};

/// Makes the steps of fit elsewhere than here: the seam at which a parameter server's coordinator
/// and its tasks enter. compile() takes the one of the innermost StepExecutorScope; without one
/// this process, or all of the mesh together, make the steps. evaluate() and predict() always run
/// here, with the weights of the last fit.
/// A callback says by OccasionalWeightReader when it needs the weights that rest elsewhere.
class StepExecutor {
 public:
  virtual ~StepExecutor() = default;

  /// Works for another process's fit, on a process that does, until that fit is over, and returns
  /// what it gave there. Nothing on the process that leads.
  virtual std::optional<History> work_for_leader(Model& model, const FitData& data,
                                                 const FitOptions& options) = 0;

  // On the process that leads.

  /// Training begins with the model's weights and all that its optimizer keeps, as they are here.
  virtual void begin(Model& model, const FitData& data, const FitOptions& options) = 0;
  /// Makes the steps, begun in order and done in any. `done` hears, on this thread, what each adds;
  /// when it returns false no further step begins. Returns how many steps are done: all that have
  /// begun. Rethrows what `done` throws and what a step threw.
  virtual int64_t run(const StepRange& range,
                      const std::function<bool(int64_t step, const StepTotals&)>& done) = 0;
  /// Brings the present weights, and all that the optimizer keeps, here.
  virtual void fetch(Model& model) = 0;
  /// The fit is over and gave this.
  virtual void end(const History& history) = 0;
  /// The fit ends with an error or a signal.
  virtual void fail(const std::string& what) noexcept = 0;
};

/// While alive, models compiled on this thread have their steps made by `executor`.
class StepExecutorScope {
 public:
  explicit StepExecutorScope(std::shared_ptr<StepExecutor> executor);

 private:
  ScopedValue<std::shared_ptr<StepExecutor>> executor_;
};
/// The executor of the innermost StepExecutorScope; null: none.
std::shared_ptr<StepExecutor> scoped_step_executor();

}  // namespace tessera::detail
