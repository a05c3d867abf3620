#pragma once

#include <tessera/framework/training/callbacks/internal/callback_list.hpp>
#include <tessera/framework/training/internal/fit_data.hpp>
#include <tessera/framework/training/internal/training_state.hpp>
#include <tessera/framework/training/trainer.hpp>

/// Parts of a fit whose steps a StepExecutor runs.
namespace tessera::detail {

/// Checks that steps can be assigned by number, chooses the metrics and begins the executor. Throws
/// ConfigError for a stream without a number of steps.
void begin_executor(Trainer& trainer, TrainingState& state, const FitData& data,
                    const FitOptions& options);

/// Has the executor run a range of steps, and calls the callbacks for each. Returns the number of
/// steps done, which are fewer if the data end or training is stopped. Throws as BatchLoop::next().
int64_t run_with_executor(Trainer& trainer, TrainingState& state, const StepRange& range,
                          const CallbackList& callbacks);

}  // namespace tessera::detail
