#pragma once

#include <cstdint>
#include <functional>

#include <tessera/framework/training/internal/metric_tracker.hpp>
#include <tessera/framework/training/internal/step_executor.hpp>
#include <tessera/framework/training/phase.hpp>

namespace tessera::detail {

/// Steps [first, last) of an epoch, or of a validation. Step i reads batch `offset` + i of pass
/// `pass` over the data.
struct StepRange {
  Phase phase = Phase::train;
  int64_t epoch = 0;
  int64_t first = 0, last = 0;
  int64_t pass = 0, offset = 0;
};

/// Base of executors outside this process, such as a parameter server's coordinator and its tasks:
/// assigns steps by number, and calls the callbacks for each. Callbacks declare by
/// OccasionalWeightReader when they need the weights, which are stored elsewhere. evaluate() and
/// predict() always run here, with the weights of the last fit.
class RemoteSteps : public StepExecutor {
 public:
  /// Chooses the metrics whose totals the steps report. Throws ConfigError for a stream without a
  /// number of steps.
  void begin(const FitRun& run) final;
  void train(const FitRun& run) final;
  void test(const FitRun& run) final;

 protected:
  /// Begins training with this process's weights and optimizer state.
  virtual void send(Trainer& trainer, const FitData& data, const FitOptions& options) = 0;
  /// Runs the steps; they begin in order and end in any. Calls `done` on this thread with each
  /// step's totals; once it returns false, or the data have ended, no further step begins. Returns
  /// the number of steps done, which are all that have begun and found a batch. Rethrows what
  /// `done` or a step throws.
  virtual int64_t run_steps(const StepRange& range,
                            const std::function<bool(int64_t step, const StepTotals&)>& done) = 0;
  /// Fetches the current weights and optimizer state to this process.
  virtual void fetch(Trainer& trainer) = 0;

 private:
  int64_t run_until_read(const FitRun& run, const StepRange& range);
  int64_t run_all(const FitRun& run, const StepRange& range);
};

}  // namespace tessera::detail
