#include <tessera/framework/tensor/internal/tracer.hpp>

#include <tessera/framework/comm/internal/thread_state.hpp>

namespace tessera::detail {

OpListener* tracer() { return thread_state().tracer; }

TracerScope::TracerScope(OpListener* tracer) : scoped_(thread_state().tracer, tracer) {}

void traced(std::span<const DTensor> in, const SideEffect& run, Changes changes) {
  if (OpListener* const listener = tracer()) listener->action(in, run, changes);
  const TracerScope untraced(nullptr);
  run(in);
}

void stop_tracing(const char* why) {
  if (OpListener* const listener = tracer()) listener->stop(why);
}

}  // namespace tessera::detail
