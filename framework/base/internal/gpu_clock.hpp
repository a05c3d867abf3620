#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace tessera::detail {

/// Records when a GPU reaches points in its queue of work, which is later than they were enqueued.
class GpuClock {
 public:
  virtual ~GpuClock() = default;
  /// Enqueues a mark behind the work that this thread has enqueued; returns the mark's number.
  virtual int64_t mark() = 0;
  /// Returns when the GPU reached each mark, in nanoseconds since the first. Waits for the GPU.
  virtual std::vector<int64_t> times() = 0;
  /// Forgets all marks.
  virtual void clear() = 0;
};

/// The clock that profiles use for GPU times; null without a GPU.
extern std::atomic<GpuClock*> gpu_clock;

}  // namespace tessera::detail
