#pragma once

#include <memory>

#include <tessera/framework/parameter_server/job/server_job.hpp>
#include <tessera/framework/training/internal/step_executor.hpp>

namespace tessera::detail {

/// Makes the steps of fit on the workers of a strategy, whose tasks all call fit alike and get the
/// coordinator's history. Every step has the rows that ordinary fit gives it, whoever makes it; of
/// a stream each worker reads all batches up to its own. Only the coordinator calls callbacks and
/// has the trained weights afterwards: those on workers are of some step before, those on parameter
/// servers as they were made. What a callback sets of weights and learning rate is sent before the
/// next step. fit throws ConfigError for layouts other than the strategy's and for
/// gradient_accumulation_steps. The strategy must outlive fit.
std::shared_ptr<StepExecutor> make_server_steps(const std::shared_ptr<ServerJob>& job,
                                                const strategy::ParameterServerStrategy& strategy);

}  // namespace tessera::detail
