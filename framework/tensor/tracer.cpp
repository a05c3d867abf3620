#include <tessera/framework/tensor/tracer.hpp>

#include <utility>

namespace tessera {
namespace {

thread_local Tracer* current = nullptr;

}  // namespace

Tracer* tracer() { return current; }

TracerScope::TracerScope(Tracer* tracer) : former_(std::exchange(current, tracer)) {}
TracerScope::~TracerScope() { current = former_; }

void traced(std::span<const DTensor> in, const TracedAction& run) {
  if (current) current->action(in, run);
  const TracerScope unheard(nullptr);
  run(in);
}

void stop_tracing(const char* why) {
  if (current) current->stop(why);
}

}  // namespace tessera
