#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace tessera::detail {

/// What a stretch of time was for a thread that computes.
struct WaitSample {
  using Seconds = std::chrono::duration<double>;
  Seconds time{0};
  Seconds waited{0};  ///< in which it was ready to run and had no processor
  Seconds others{0};  ///< of processors that other programs had, all processors together
};

/// Whether other programs take the processors from a thread: when it waits for a tenth of the time
/// twice in a row while they have two fifths of a processor, and no longer after two seconds in
/// which it waits for less than a fiftieth. Threads of our own, such as the one that reads the next
/// batch, may let it wait as well; they are no reason to sleep.
class CrowdJudge {
 public:
  using Seconds = WaitSample::Seconds;

  void note(const WaitSample& sample);
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
