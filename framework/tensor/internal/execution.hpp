#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include <ATen/Parallel.h>
#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/mesh/device.hpp>
#include <tessera/framework/tensor/internal/memory_planner.hpp>

namespace tessera::detail {

/// The ATen device that runs a device's work; a GPU computes on that device's current stream. Only
/// run_blocks() and engines enter one; communication has a stream of its own (Gpu).
class ExecutionContext {
 public:
  /// Returns the context of a device of this process. Throws ConfigError for an unusable GPU, like
  /// gpu().
  static const ExecutionContext& of(Device device);
  c10::Device torch_device() const { return torch_device_; }

 private:
  explicit ExecutionContext(c10::Device device) : torch_device_(device) {}
  c10::Device torch_device_;
};

/// Returns the number of worker threads that run blocks of virtual CPUs: ATen's intra-op threads.
int64_t worker_count();

/// Restricts OpenMP to one thread in this thread. Called by a task that runs blocks in one of many
/// threads: ATen's kernels are serial there, but oneDNN's would wait for threads that do not exist.
void use_one_thread();

/// While alive in a WorldSizeInvariantScope, kernels that this thread calls run on one thread: how
/// many share a kernel may change its bits.
class OneThreadIfInvariant {
 public:
  OneThreadIfInvariant();
  ~OneThreadIfInvariant();
  OneThreadIfInvariant(const OneThreadIfInvariant&) = delete;
  OneThreadIfInvariant& operator=(const OneThreadIfInvariant&) = delete;

 private:
  int before_ = 0;  ///< number of threads to return to; 0: unchanged
};

/// Number of elements below which handing blocks to other threads costs more than it saves.
inline constexpr int64_t inline_elements = 16384;

/// Calls run(b) for b in [0, blocks), under InferenceMode: inline for one block or if not
/// `parallel`, else in fixed contiguous ranges on ATen's threads, in which ATen is serial. Rethrows
/// the exception of the lowest block.
template <class Run>
void run_blocks(int64_t blocks, bool parallel, const Run& run) {
  const MemoryPlanner::Blocks memory;
  if (blocks <= 1 || !parallel) {
    const OneThreadIfInvariant one;
    const c10::InferenceMode inference;
    MemoryPlanner::Blocks::Worker worker(memory);
    for (int64_t b = 0; b < blocks; ++b) {
      worker.at(b);
      run(b);
    }
    return;
  }
  const ProfileSpan span(SpanKind::parallel, "blocks");
  std::vector<std::exception_ptr> errors(static_cast<size_t>(blocks));
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    if (at::in_parallel_region()) use_one_thread();
    const c10::InferenceMode inference;
    MemoryPlanner::Blocks::Worker worker(memory);
    for (int64_t b = begin; b < end; ++b) {
      try {
        worker.at(b);
        run(b);
      } catch (...) {
        errors[static_cast<size_t>(b)] = std::current_exception();
      }
    }
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

/// Calls run(b) for blocks that are stored on these devices, all CPUs or all GPUs. This thread
/// queues the GPUs' work one GPU after the other, each as the current device, and does not wait.
template <class Run>
void run_blocks(const std::vector<c10::Device>& devices, bool parallel, const Run& run) {
  const auto blocks = static_cast<int64_t>(devices.size());
  if (blocks == 0 || devices.front().is_cpu()) return run_blocks(blocks, parallel, run);
  const c10::InferenceMode inference;
  for (int64_t b = 0; b < blocks; ++b) {
    const c10::DeviceGuard guard(devices[static_cast<size_t>(b)]);
    run(b);
  }
}

}  // namespace tessera::detail
