#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tessera::test::fake_gpu {

/// The live counts behind Counters of fake_gpu.hpp.
struct Counts {
  std::atomic<int64_t> kernels = 0, pinned_uploads = 0, pageable_uploads = 0, downloads = 0,
                       moves = 0, waits = 0, allocations = 0, graphs = 0;
  std::atomic<int> loads = 0;
};
Counts& counts();

/// Counts a wait of the host. Throws StateError beyond a SyncBudget, and while this thread
/// captures.
void count_wait(const std::string& op);

/// Sets the name of the last operation, which is reported when the host touches GPU memory
/// afterwards.
void set_last_op(const char* name);
const char* last_op();

}  // namespace tessera::test::fake_gpu
