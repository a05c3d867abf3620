#include "tests/support/fake_gpu/counters.hpp"

#include <limits>
#include <mutex>
#include <utility>

#include <tessera/framework/base/error.hpp>

#include "tests/support/fake_gpu/fake_gpu.hpp"
#include "tests/support/fake_gpu/recording.hpp"

namespace tessera::test::fake_gpu {

namespace {

constexpr int64_t no_budget = std::numeric_limits<int64_t>::max();

/// The number of waits still allowed.
std::atomic<int64_t> budget = no_budget;
std::atomic<const char*> last = "none yet";

struct Names {
  std::mutex mutex;
  std::vector<std::string> all;
};
Names& names() {
  static auto* const instance = new Names;
  return *instance;
}

}  // namespace

Counts& counts() {
  static auto* const instance = new Counts;
  return *instance;
}

void count_wait(const std::string& op) {
  refuse_while_recording(op);
  ++counts().waits;
  {
    const std::lock_guard lock(names().mutex);
    names().all.push_back(op);
  }
  if (budget == no_budget || budget-- > 0) return;
  throw StateError(op, "the host waits for a GPU no more often than its budget says",
                   "one wait more", "leave the number on the GPU");
}

void set_last_op(const char* name) { last = name; }
const char* last_op() { return last; }

Counters counters() {
  const Counts& c = counts();
  return {c.kernels, c.pinned_uploads, c.pageable_uploads, c.downloads,
          c.moves,   c.waits,          c.allocations,      c.graphs};
}

Counters operator-(const Counters& after, const Counters& before) {
  return {after.kernels - before.kernels,
          after.pinned_uploads - before.pinned_uploads,
          after.pageable_uploads - before.pageable_uploads,
          after.downloads - before.downloads,
          after.moves - before.moves,
          after.waits - before.waits,
          after.allocations - before.allocations,
          after.graphs - before.graphs};
}

std::vector<std::string> take_waits() {
  const std::lock_guard lock(names().mutex);
  return std::exchange(names().all, {});
}

SyncBudget::SyncBudget(int64_t waits) : before_(budget.exchange(waits)) {}
SyncBudget::~SyncBudget() { budget = before_; }

int loads() { return counts().loads; }

}  // namespace tessera::test::fake_gpu
