#pragma once

#include <memory>

#include <c10/core/Allocator.h>

namespace tessera::detail {

/// Wraps memory at `data` so that freeing it calls `done(context)`. Watches are found by address,
/// since ATen's libraries request raw memory, which carries no context. Watched memory may be
/// watched again; the last watcher is called first and frees the memory to the one before.
c10::DataPtr watched_memory(void* data, void* context, void (*done)(void*));

/// Returns the context of the last watch of memory at `data` if that calls `done`; otherwise null.
void* watch_context(const void* data, void (*done)(void*));

/// Wraps memory so that freeing it calls `done` with a context that it owns; the context is freed
/// if watching throws.
template <class Context>
c10::DataPtr watched_memory(void* data, std::unique_ptr<Context> context, void (*done)(void*)) {
  c10::DataPtr watched = watched_memory(data, static_cast<void*>(context.get()), done);
  context.release();
  return watched;
}

}  // namespace tessera::detail
