#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::test::fake_gpu {

/// GPUs that TESSERA_FAKE_GPUS=n puts in the place of CUDA's, and what a program asked of them.
/// They compute on the CPU, on memory that the host may not touch; what CUDA refuses they refuse.

/// What was asked of all fake GPUs since the program began.
struct Counters {
  int64_t kernels = 0;
  int64_t pinned_uploads = 0;    ///< from pinned memory to a GPU
  int64_t pageable_uploads = 0;  ///< from other memory of the host; CUDA waits for each
  int64_t downloads = 0;         ///< to the host
  int64_t moves = 0;             ///< from GPU to GPU
  int64_t waits = 0;             ///< of the host for a GPU, those of copies among them
  int64_t allocations = 0;
  int64_t graphs = 0;  ///< replays of recorded work, whose kernels and copies are not counted
  int64_t uploads() const { return pinned_uploads + pageable_uploads; }
};
Counters counters();
/// What came between two readings.
Counters operator-(const Counters& after, const Counters& before);

/// ATen's names of what waited since the last call, in order.
std::vector<std::string> take_waits();

/// While it lives, one wait more than so many of them throws a StateError that names the operation.
class SyncBudget {
 public:
  explicit SyncBudget(int64_t waits);
  ~SyncBudget();
  SyncBudget(const SyncBudget&) = delete;
  SyncBudget& operator=(const SyncBudget&) = delete;

 private:
  int64_t before_;
};

/// How often kernels for GPUs were loaded.
int loads();

/// Takes SIGSEGV from whoever handles it, so that a touch of a GPU's memory is told in one line.
/// Each allocation does so too.
void catch_host_access();

}  // namespace tessera::test::fake_gpu
