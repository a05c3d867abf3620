#include <tessera/framework/tensor/internal/tracer.hpp>

#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/tensor/device_memory.hpp>

namespace tessera::detail {

OpListener* tracer() { return thread_state().tracer; }

TracerScope::TracerScope(OpListener* tracer) : scoped_(thread_state().tracer, tracer) {}

void traced(std::span<const DTensor> in, const SideEffect& run, Changes changes) {
  if (OpListener* const listener = tracer()) listener->action(in, run, changes);
  const TracerScope untraced(nullptr);
  perform(in, run, changes);
}

void perform(std::span<const DTensor> in, const SideEffect& run, Changes changes) {
  const auto label = [&] {
    if (changes != Changes::variables || !DeviceMemory::exists()) return;
    for (const DTensor& value : in) {
      const bool tensor = value.defined() && value.rank() > 0;
      if (tensor) DeviceMemory::label(value, MemoryUse::gradients);
    }
  };
  label();
  run(in);
  // It may have reduced them, into other memory.
  label();
}

void stop_tracing(const char* why) {
  if (OpListener* const listener = tracer()) listener->stop(why);
}

}  // namespace tessera::detail
