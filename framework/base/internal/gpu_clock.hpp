#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace tessera::detail {

/// When a GPU comes to what it was given, which is later than the host gave it.
class GpuClock {
 public:
  virtual ~GpuClock() = default;
  /// Marks the end of what this thread has given the GPU; the mark's number.
  virtual int64_t mark() = 0;
  /// When the GPU came to each mark, in nanoseconds since the first. Waits for the GPU.
  virtual std::vector<int64_t> times() = 0;
  /// Forgets all marks.
  virtual void clear() = 0;
};

/// What profiles take the times of GPUs from; null before there is a GPU.
extern std::atomic<GpuClock*> gpu_clock;

}  // namespace tessera::detail
