#pragma once

#include <cstdint>
#include <optional>

#include <tessera/framework/data/internal/batch_reader.hpp>
#include <tessera/framework/parameter_server/closure.hpp>
#include <tessera/framework/training/internal/remote_steps.hpp>

namespace tessera::detail {

/// The step of fit that a closure runs.
struct StepNumber {
  int64_t pass = 0;   ///< pass over the data
  int64_t batch = 0;  ///< batch of that pass
  /// number of earlier optimizer steps, which seeds dropout and other random operations
  int64_t optimizer_steps = 0;
};
strategy::ClosureValue to_closure(const StepNumber& number);

/// Converts a step's totals to a closure's result. Bit-exact, also for non-finite numbers.
strategy::ClosureValue to_closure(const StepTotals& totals);
/// Reads the result of to_closure(const StepTotals&). Throws ConfigError if it is invalid.
StepTotals totals_of(const strategy::ClosureValue& value);

/// A worker's side of fit: runs steps by number.
class StepMaker {
 public:
  /// `layouts`: layouts of batches. The model must outlive this object.
  StepMaker(Model& model, const FitData& data, const FitOptions& options, const LayoutMap& layouts);

  /// Reads the step's rows and trains or tests on them; returns totals of no rows if a stream ends
  /// before the step. Throws ConfigError for an invalid `number`.
  strategy::ClosureValue make(Phase phase, const strategy::ClosureValue& number);

 private:
  std::optional<Batch> batch_of(Phase phase, const StepNumber& number);

  Model& model_;
  LayoutMap layouts_;
  BatchReader training_;
  std::optional<BatchReader> validation_;
};

}  // namespace tessera::detail
