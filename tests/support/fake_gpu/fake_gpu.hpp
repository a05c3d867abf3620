#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::test::fake_gpu {

/// Fake GPUs, which TESSERA_FAKE_GPUS=n puts in place of CUDA's, and counters of what a program
/// asked of them. They compute on the CPU, on memory that the host may not touch, and refuse what
/// CUDA refuses.

/// Counts of all fake GPUs since the program began.
struct Counters {
  int64_t kernels = 0;
  int64_t pinned_uploads = 0;    ///< copies from pinned memory to a GPU
  int64_t pageable_uploads = 0;  ///< copies from other host memory, each of which CUDA waits for
  int64_t downloads = 0;         ///< copies to the host
  int64_t moves = 0;             ///< copies from GPU to GPU
  int64_t waits = 0;             ///< waits of the host for a GPU, including those of copies
  int64_t allocations = 0;
  int64_t graphs = 0;  ///< replays of recorded work, whose kernels and copies are not counted
  int64_t uploads() const { return pinned_uploads + pageable_uploads; }
};
Counters counters();
/// Returns the counts between two readings.
Counters operator-(const Counters& after, const Counters& before);

/// Returns ATen's names of the operations that waited since the last call, in order.
std::vector<std::string> take_waits();

/// Limits the waits during its lifetime: one more throws a StateError that names the operation.
class SyncBudget {
 public:
  explicit SyncBudget(int64_t waits);
  ~SyncBudget();
  SyncBudget(const SyncBudget&) = delete;
  SyncBudget& operator=(const SyncBudget&) = delete;

 private:
  int64_t before_;
};

/// Returns how often kernels for GPUs were loaded.
int loads();

/// Takes over the SIGSEGV handler, so that an access to GPU memory by the host is reported in one
/// line. Each allocation also does so.
void catch_host_access();

}  // namespace tessera::test::fake_gpu
