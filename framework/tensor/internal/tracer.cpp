#include <tessera/framework/tensor/internal/tracer.hpp>

#include <tessera/framework/comm/internal/thread_state.hpp>

namespace tessera::detail {

OpListener* tracer() { return thread_state().tracer; }

TracerScope::TracerScope(OpListener* tracer) : scoped_(thread_state().tracer, tracer) {}

void traced(std::span<const DTensor> in, const TracedAction& run) {
  if (OpListener* const hears = tracer()) hears->action(in, run);
  const TracerScope unheard(nullptr);
  run(in);
}

void stop_tracing(const char* why) {
  if (OpListener* const hears = tracer()) hears->stop(why);
}

}  // namespace tessera::detail
