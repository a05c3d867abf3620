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

/// Totals of one step, which are added to loss and metrics.
struct StepTotals {
  /// Sum of the loss over rows; number of rows, 0 if the data ended before this step.
  double loss = 0;
  int64_t rows = 0;
  struct MetricTotals {
    std::string name;            ///< name in the logs
    std::vector<double> totals;  ///< result of Metric::totals()
    double value = 0;            ///< value of this step alone
  };
  std::vector<MetricTotals> metrics = {};
};

/// Steps [first, last) of an epoch, or of a validation. Step i reads batch `offset` + i of pass
/// `pass` over the data.
struct StepRange {
  Phase phase = Phase::train;
  int64_t epoch = 0;
  int64_t first = 0, last = 0;
  int64_t pass = 0, offset = 0;
};

/// Interface to run the steps of fit outside this process, for a parameter server's coordinator and
/// its tasks. compile() takes the executor of the innermost StepExecutorScope; without one, this
/// process, or all processes of the mesh together, run the steps. evaluate() and predict() always
/// run here, with the weights of the last fit. Callbacks declare by OccasionalWeightReader when
/// they need the weights, which are stored elsewhere.
class StepExecutor {
 public:
  virtual ~StepExecutor() = default;

  /// Works for another process's fit until it is over and returns its history. On the leading
  /// process, returns nothing at once.
  virtual std::optional<History> work_for_leader(Model& model, const FitData& data,
                                                 const FitOptions& options) = 0;

  // On the leading process.

  /// Begins training with this process's weights and optimizer state.
  virtual void begin(Model& model, const FitData& data, const FitOptions& options) = 0;
  /// Runs the steps; they begin in order and end in any. Calls `done` on this thread with each
  /// step's totals; once it returns false, or the data have ended, no further step begins. Returns
  /// the number of steps done, which are all that have begun and found a batch. Rethrows what
  /// `done` or a step throws.
  virtual int64_t run(const StepRange& range,
                      const std::function<bool(int64_t step, const StepTotals&)>& done) = 0;
  /// Fetches the current weights and optimizer state to this process.
  virtual void fetch(Model& model) = 0;
  /// Ends the fit, which resulted in `history`.
  virtual void end(const History& history) = 0;
  /// Ends the fit after an error or a signal.
  virtual void fail(const std::string& what) noexcept = 0;
};

/// While alive, `executor` runs the steps of models compiled on this thread.
class StepExecutorScope {
 public:
  explicit StepExecutorScope(std::shared_ptr<StepExecutor> executor);

 private:
  ScopedValue<std::shared_ptr<StepExecutor>> executor_;
};
/// Returns the executor of the innermost StepExecutorScope; null: none.
std::shared_ptr<StepExecutor> scoped_step_executor();

}  // namespace tessera::detail
