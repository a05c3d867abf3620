#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/training/internal/step_executor.hpp>
#include <tessera/framework/training/internal/step_runner.hpp>

namespace tessera::detail {

/// Runs the test steps on a loader's batches and adds their values to the metrics; warns if they
/// are fewer than the user `asked_for`. Collective.
void test_batches(const std::string& caller, StepRunner& steps, TrainingState& state,
                  BatchLoader& loader, const CallbackList& callbacks,
                  const std::optional<int64_t>& asked_for);

/// Runs the steps in this process: in those of the mesh together, which agree between two steps.
class LocalSteps final : public StepExecutor {
 public:
  void train(const FitRun& run) override;
  void test(const FitRun& run) override;
};

}  // namespace tessera::detail
