#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

#include <c10/core/Stream.h>

namespace tessera::test::fake_gpu {

/// Streams that run as late as possible: queued work runs when a kernel, the host or another stream
/// waits for it. ATen's kernels run at once, after all queued work of their stream.

/// Streams of a GPU: the default one and a pool.
inline constexpr size_t stream_count = 9;

/// Returns the lock that guards everything on a GPU; it is recursive.
std::recursive_mutex& lock_of(c10::DeviceIndex device);

/// Returns this thread's current stream on a GPU; the setter returns the previous one.
c10::Stream current_stream(c10::DeviceIndex device);
c10::Stream exchange_stream(c10::Stream stream);
/// Returns a non-default stream, from a small pool in rotation.
c10::Stream pool_stream(c10::DeviceIndex device);

/// Converts between a stream and its handle for libraries.
void* handle_of(c10::Stream stream);
c10::Stream stream_of(const void* handle);

/// Advances a piece of work without waiting; returns whether it is done.
using Work = std::function<bool()>;
/// Queues work on the stream, even while it records; returns its position.
uint64_t enqueue(c10::Stream stream, Work work);
/// Returns the position of the last queued work.
uint64_t last_position(c10::Stream stream);
/// Whether all work up to the position has run.
bool is_done(c10::Stream stream, uint64_t position);
/// Advances the stream up to the position; returns whether that is done.
bool advance(c10::Stream stream, uint64_t position);
/// Advances the stream's next piece of work, so that time passes for callers that poll.
void go_on(c10::Stream stream);

/// Runs the stream's work up to the position, or all of it, or all of the GPU's. Must not be called
/// under a lock: other threads may have to make progress first.
void finish(c10::Stream stream, uint64_t position);
void finish(c10::Stream stream);
void finish(c10::DeviceIndex device);

}  // namespace tessera::test::fake_gpu
