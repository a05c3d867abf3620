#include <tessera/framework/tensor/internal/tracer.hpp>

#include <utility>

namespace tessera::detail {
namespace {

thread_local Tracer* current_tracer = nullptr;

}  // namespace

Tracer* tracer() { return current_tracer; }

TracerScope::TracerScope(Tracer* tracer) : former_(std::exchange(current_tracer, tracer)) {}
TracerScope::~TracerScope() { current_tracer = former_; }

void traced(std::span<const DTensor> in, const TracedAction& run) {
  if (current_tracer) current_tracer->action(in, run);
  const TracerScope unheard(nullptr);
  run(in);
}

void stop_tracing(const char* why) {
  if (current_tracer) current_tracer->stop(why);
}

}  // namespace tessera::detail
