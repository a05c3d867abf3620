#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace tessera::detail {

/// Whether other programs take the processors from a thread that computes, judged by how long it
/// was ready and had none: when that is a tenth of the time twice in a row, and no longer after two
/// seconds with less than a fiftieth.
class CrowdJudge {
 public:
  using Seconds = std::chrono::duration<double>;

  /// Notes a time in which the thread waited so long for a processor.
  void note(Seconds time, Seconds waited);
  bool crowded() const { return crowded_; }

 private:
  bool crowded_ = false;
  bool waited_before_ = false;
  Seconds calm_{0};
};

/// While alive, the threads of libgomp sleep soon after they have nothing to do, in place of some
/// milliseconds in which they look for work: it does so while it has more threads than processors
/// (its manual, GOMP_SPINCOUNT), and this is one team more, asleep.
class SleepyThreads {
 public:
  SleepyThreads();
  ~SleepyThreads();
  SleepyThreads(const SleepyThreads&) = delete;
  SleepyThreads& operator=(const SleepyThreads&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ready_ = false;
  bool ends_ = false;
  std::thread holder_;
};

/// Lets ATen's threads look for work between two loops where the machine is theirs, which saves a
/// third of a small step, and sleep where others need it: a thread that looks for work uses up the
/// share of the processor that the one it waits for would need. To be called at each step by the
/// thread that computes; it costs a look at the clock, and every tenth of a second one at Linux'
/// account of the thread. OMP_WAIT_POLICY or GOMP_SPINCOUNT in the environment decide for good,
/// and so does a kernel without /proc/thread-self/schedstat.
void adapt_wait_policy();

/// Whether threads sleep now because the machine is crowded.
bool machine_is_crowded();

}  // namespace tessera::detail
