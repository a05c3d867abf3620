#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tessera::test::fake_gpu {

/// What fake_gpu.hpp's Counters are read from.
struct Counts {
  std::atomic<int64_t> kernels = 0, pinned_uploads = 0, pageable_uploads = 0, downloads = 0,
                       moves = 0, waits = 0, allocations = 0, graphs = 0;
  std::atomic<int> loads = 0;
};
Counts& counts();

/// Counts a wait of the host. Throws StateError where it is beyond a SyncBudget, and where this
/// thread records.
void count_wait(const std::string& op);

/// The operation that came last, for who touches memory after it.
void set_last_op(const char* name);
const char* last_op();

}  // namespace tessera::test::fake_gpu
