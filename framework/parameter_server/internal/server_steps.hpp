#pragma once

#include <memory>

#include <tessera/framework/parameter_server/job/server_job.hpp>
#include <tessera/framework/training/internal/step_executor.hpp>

namespace tessera::detail {

/// Returns the executor that runs the steps of fit on a strategy's workers. All tasks call fit with
/// the same arguments and return the coordinator's history. A step has the same rows as in ordinary
/// fit, whichever worker runs it; of a stream every worker reads all batches up to its own. Only
/// the coordinator calls callbacks and has the trained weights afterwards: workers keep those of an
/// earlier step, parameter servers the initial ones. Weights and learning rates set by callbacks
/// are sent before the next step. fit throws ConfigError for layouts other than the strategy's and
/// for gradient_accumulation_steps. The strategy must outlive fit.
std::shared_ptr<StepExecutor> make_server_steps(const std::shared_ptr<ServerJob>& job,
                                                const strategy::ParameterServerStrategy& strategy);

}  // namespace tessera::detail
