#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

#include <c10/core/Stream.h>

namespace tessera::test::fake_gpu {

/// Streams run as late as they may: what is put into one runs when a kernel, the host or another
/// stream waits for it. Kernels of ATen run at once, behind all that their stream still has to do.

/// Of a GPU: the default one and a pool.
inline constexpr size_t stream_count = 9;

/// What happens on a GPU happens under its lock; a thread may take it again.
std::recursive_mutex& lock_of(c10::DeviceIndex device);

/// The stream of this thread on a GPU, and its change, which gives the one before.
c10::Stream current_stream(c10::DeviceIndex device);
c10::Stream exchange_stream(c10::Stream stream);
/// Another stream than the default one, of a few in turns.
c10::Stream pool_stream(c10::DeviceIndex device);

/// The handle that a stream has for libraries, and the stream of a handle.
void* handle_of(c10::Stream stream);
c10::Stream stream_of(const void* handle);

/// Goes on with a piece of work, never waiting; whether it is done.
using Work = std::function<bool()>;
/// Puts work behind all that the stream has to do, even while it records; the position that it has
/// there.
uint64_t enqueue(c10::Stream stream, Work work);
/// The position of what was put into the stream last.
uint64_t last_position(c10::Stream stream);
/// Whether all up to the position has run.
bool is_done(c10::Stream stream, uint64_t position);
/// Goes on with what the stream has to do up to the position; whether that is done.
bool advance(c10::Stream stream, uint64_t position);
/// Goes on with the stream's next piece of work: time passes for who asks again and again.
void go_on(c10::Stream stream);

/// Runs what the stream has to do up to the position, or all of it, or all that the GPU has to do.
/// Not to be called under a lock: what other threads do may have to come first.
void finish(c10::Stream stream, uint64_t position);
void finish(c10::Stream stream);
void finish(c10::DeviceIndex device);

}  // namespace tessera::test::fake_gpu
