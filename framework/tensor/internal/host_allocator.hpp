#pragma once

#include <memory>

#include <c10/core/Allocator.h>

namespace tessera::detail {

/// Memory at `data` that calls `done(context)` when it is given back. By its address: ATen's
/// libraries ask for raw memory, which has no other context. Memory may be watched once more while
/// it is; the last watcher hears first, and gives it back to the one before.
c10::DataPtr watched_memory(void* data, void* context, void (*done)(void*));

/// Memory that calls `done` with a context of its own, which is freed if it cannot be watched.
template <class Context>
c10::DataPtr watched_memory(void* data, std::unique_ptr<Context> context, void (*done)(void*)) {
  c10::DataPtr watched = watched_memory(data, static_cast<void*>(context.get()), done);
  context.release();
  return watched;
}

}  // namespace tessera::detail
