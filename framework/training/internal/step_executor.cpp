#include <tessera/framework/training/internal/step_executor.hpp>

#include <utility>

#include <tessera/framework/comm/internal/thread_state.hpp>

namespace tessera::detail {

StepExecutorScope::StepExecutorScope(std::shared_ptr<StepExecutor> executor)
    : executor_(thread_state().step_executor, std::move(executor)) {}

std::shared_ptr<StepExecutor> scoped_step_executor() { return thread_state().step_executor; }

}  // namespace tessera::detail
