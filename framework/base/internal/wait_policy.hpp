#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace tessera::detail {

/// Scheduling of a compute thread during an interval of time.
struct WaitSample {
  using Seconds = std::chrono::duration<double>;
  Seconds time{0};    ///< length of the interval
  Seconds ran{0};     ///< time in which the thread ran
  Seconds waited{0};  ///< time in which the thread was runnable without a processor
  Seconds others{0};  ///< processor time used by other programs, over all processors
};

/// Detects that other programs compete for a thread's processors: when the thread waits at least
/// 10 % of the time in which it is runnable, in two consecutive samples, while they use at least
/// 0.4 processors. Contention ends after it was runnable for two seconds with less than 2 %
/// waiting, or after 0.2 seconds in which they use less than 0.25 processors. Waiting caused by our
/// own threads, such as the one that reads the next batch, does not count. Neither does time in
/// which the thread sleeps, as a server's does between requests: what others use while it sleeps
/// most of the time does not prolong contention, and a sample in which it was runnable for less
/// than 10 ms says nothing.
class CpuContentionDetector {
 public:
  using Seconds = WaitSample::Seconds;

  void add_sample(const WaitSample& sample);
  bool contended() const { return contended_; }

 private:
  bool contended_ = false;
  bool waited_before_ = false;
  Seconds calm_{0};
  Seconds alone_{0};
};

/// While alive, idle OpenMP threads block almost at once instead of spinning for some milliseconds.
/// libgomp does so while it has more threads than processors (see GOMP_SPINCOUNT in its manual);
/// this adds a sleeping team that makes it so. LLVM's library, which takes libgomp's place for
/// libtorch too in a build by clang, has a call for it.
class BlockingOmpTeam {
 public:
  BlockingOmpTeam();
  ~BlockingOmpTeam();
  BlockingOmpTeam(const BlockingOmpTeam&) = delete;
  BlockingOmpTeam& operator=(const BlockingOmpTeam&) = delete;

 private:
#ifdef __clang__
  int spinning_ms_;  ///< how long idle threads spin otherwise
#else
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ready_ = false;
  bool ends_ = false;
  std::thread holder_;
#endif
};

/// Chooses whether ATen's idle threads spin or block. Spinning saves a third of a small step, but
/// on contended processors a spinning thread takes time that the thread it waits for needs. The
/// compute thread calls this at every step; it costs a clock read, and every 0.1 s a read of the
/// thread's schedstat. Does nothing if OMP_WAIT_POLICY, GOMP_SPINCOUNT or KMP_BLOCKTIME is set, or
/// if the kernel has no /proc/thread-self/schedstat.
void adapt_wait_policy();

/// Whether idle threads block now because the processors are contended.
bool cpus_are_contended();

}  // namespace tessera::detail
