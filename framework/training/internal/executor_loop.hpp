#pragma once

#include <tessera/framework/training/callbacks/internal/callback_list.hpp>
#include <tessera/framework/training/internal/fit_data.hpp>
#include <tessera/framework/training/internal/training_state.hpp>
#include <tessera/framework/training/trainer.hpp>

/// What differs in a fit whose steps a StepExecutor makes.
namespace tessera::detail {

/// Checks that steps can be handed out by their numbers, chooses the metrics and begins. Throws
/// ConfigError for a stream without a number of steps.
void begin_executor(Trainer& trainer, TrainingState& state, const FitData& data,
                    const FitOptions& options);

/// Has the steps of a range made and tells the callbacks of each. Throws as BatchLoop::next().
void run_elsewhere(Trainer& trainer, TrainingState& state, const StepRange& range,
                   const CallbackList& callbacks);

}  // namespace tessera::detail
