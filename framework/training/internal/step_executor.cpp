#include <tessera/framework/training/internal/step_executor.hpp>

#include <utility>

#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/training/internal/local_steps.hpp>

namespace tessera::detail {

StepExecutorScope::StepExecutorScope(std::shared_ptr<StepExecutor> executor)
    : executor_(thread_state().step_executor, std::move(executor)) {}

std::shared_ptr<StepExecutor> step_executor() {
  const std::shared_ptr<StepExecutor>& scoped = thread_state().step_executor;
  return scoped ? scoped : std::make_shared<LocalSteps>();
}

}  // namespace tessera::detail
