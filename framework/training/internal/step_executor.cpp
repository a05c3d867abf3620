#include <tessera/framework/training/internal/step_executor.hpp>

#include <utility>

namespace tessera::detail {
namespace {

thread_local std::shared_ptr<StepExecutor> scoped_executor;

}  // namespace

StepExecutorScope::StepExecutorScope(std::shared_ptr<StepExecutor> executor)
    : former_(std::exchange(scoped_executor, std::move(executor))) {}
StepExecutorScope::~StepExecutorScope() { scoped_executor = std::move(former_); }
std::shared_ptr<StepExecutor> scoped_step_executor() { return scoped_executor; }

}  // namespace tessera::detail
