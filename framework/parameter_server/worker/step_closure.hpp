#pragma once

#include <cstdint>
#include <optional>

#include <tessera/framework/data/internal/batch_reader.hpp>
#include <tessera/framework/parameter_server/closure.hpp>
#include <tessera/framework/training/internal/step_executor.hpp>

namespace tessera::detail {

/// Which step of fit a closure makes.
struct StepNumber {
  int64_t epoch = 0;
  int64_t step = 0;
  /// Steps of the optimizer before it, which dropout and the like follow.
  int64_t optimizer_steps = 0;
};
strategy::ClosureValue to_closure(const StepNumber& number);

/// What a step adds, as a closure gives it: numbers keep every bit, those that are not finite, too.
strategy::ClosureValue to_closure(const StepTotals& totals);
/// Throws ConfigError for anything else than that.
StepTotals totals_of(const strategy::ClosureValue& value);

/// A worker's side of fit: makes steps by their numbers.
class StepMaker {
 public:
  /// `layouts`: where batches lie. The model must outlive it.
  StepMaker(Model& model, const FitData& data, const FitOptions& options, const LayoutMap& layouts);

  /// Reads the step's rows and trains or tests on them. Throws ConfigError for anything that
  /// to_closure() does not give, or where a stream ends before the step.
  strategy::ClosureValue make(Phase phase, const strategy::ClosureValue& number);

 private:
  Batch batch_of(Phase phase, const StepNumber& number);

  Model& model_;
  LayoutMap layouts_;
  BatchReader training_;
  std::optional<BatchReader> validation_;
};

}  // namespace tessera::detail
