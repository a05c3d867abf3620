#include <tessera/framework/base/internal/wait_policy.hpp>

#include <omp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

namespace tessera::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr CpuContentionDetector::Seconds sample_interval{0.1};
constexpr CpuContentionDetector::Seconds calm_duration{2};
constexpr CpuContentionDetector::Seconds alone_duration{0.2};
constexpr CpuContentionDetector::Seconds shortest_runnable{0.01};
constexpr double contended_share = 0.1;
constexpr double share_of_others = 0.4;
constexpr double calm_share = 0.02;
constexpr double share_of_nobody = 0.25;

/// How long a thread has run since it began, and been runnable without a processor.
struct ThreadTimes {
  CpuContentionDetector::Seconds ran{0};
  CpuContentionDetector::Seconds waited{0};
};

/// Returns the times of this thread; nullopt if the kernel does not tell.
std::optional<ThreadTimes> times_of_thread() {
  std::ifstream file("/proc/thread-self/schedstat");
  int64_t ran = 0;
  int64_t waited = 0;
  if (!(file >> ran >> waited)) return std::nullopt;
  return ThreadTimes{std::chrono::nanoseconds(ran), std::chrono::nanoseconds(waited)};
}

/// Returns the processor time of all programs since boot.
CpuContentionDetector::Seconds used_by_all() {
  std::ifstream file("/proc/stat");
  std::string label;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0;
  file >> label >> user >> nice >> system >> idle >> waiting >> interrupts >> soft;
  static const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return CpuContentionDetector::Seconds((user + nice + system + interrupts + soft) / ticks);
}

/// Returns the processor time of this program.
CpuContentionDetector::Seconds used_by_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return CpuContentionDetector::Seconds(seconds(usage.ru_utime) + seconds(usage.ru_stime));
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

bool is_adaptable() {
  const bool chosen =
      is_set("OMP_WAIT_POLICY") || is_set("GOMP_SPINCOUNT") || is_set("KMP_BLOCKTIME");
  return !chosen && omp_get_max_threads() > 1;
}

/// The process-wide wait policy; one thread at a time updates it.
class WaitPolicy {
 public:
  void update(Clock::time_point now) {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock) return;
    const std::optional<ThreadTimes> times = times_of_thread();
    if (!times) return;
    const CpuContentionDetector::Seconds others = used_by_all() - used_by_us();
    // Counters of different threads cannot be compared.
    if (thread_ == std::this_thread::get_id()) {
      detector_.add_sample(
          {now - time_, times->ran - times_.ran, times->waited - times_.waited, others - others_});
    }
    thread_ = std::this_thread::get_id();
    time_ = now;
    times_ = *times;
    others_ = others;
    if (detector_.contended() == static_cast<bool>(threads_)) return;
    threads_ = detector_.contended() ? std::make_unique<BlockingOmpTeam>() : nullptr;
  }
  bool contended() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return detector_.contended();
  }

 private:
  mutable std::mutex mutex_;
  std::thread::id thread_;
  Clock::time_point time_;
  ThreadTimes times_;
  CpuContentionDetector::Seconds others_{0};
  CpuContentionDetector detector_;
  std::unique_ptr<BlockingOmpTeam> threads_;
};

/// Never destroyed, so that program exit does not wait for sleeping threads.
WaitPolicy& wait_policy() {
  static auto* policy = new WaitPolicy;
  return *policy;
}

}  // namespace

void CpuContentionDetector::add_sample(const WaitSample& sample) {
  const Seconds runnable = sample.ran + sample.waited;
  if (runnable < shortest_runnable) return;
  const double share = sample.waited / runnable;
  const double others = sample.others / sample.time;
  const bool waits = share >= contended_share && others >= share_of_others;
  // A single such sample may be another program that has just finished, with threads still
  // spinning.
  if (waits && waited_before_) contended_ = true;
  waited_before_ = waits;
  calm_ = share < calm_share ? calm_ + runnable : Seconds{0};
  if (others < share_of_nobody) {
    alone_ += sample.time;
  } else if (runnable >= 0.5 * sample.time) {
    alone_ = Seconds{0};
  }
  if (calm_ >= calm_duration || alone_ >= alone_duration) contended_ = false;
}

#ifdef __clang__
BlockingOmpTeam::BlockingOmpTeam() : spinning_ms_(kmp_get_blocktime()) { kmp_set_blocktime(0); }

BlockingOmpTeam::~BlockingOmpTeam() { kmp_set_blocktime(spinning_ms_); }
#else
BlockingOmpTeam::BlockingOmpTeam() {
  const int workers = omp_get_max_threads();
  const int team = std::max(2, omp_get_num_procs() - workers + 2);
  holder_ = std::thread([this, team] {
#pragma omp parallel num_threads(team)
    {
      // The compiler would remove an empty region.
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    std::unique_lock<std::mutex> lock(mutex_);
    ready_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return ends_; });
  });
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return ready_; });
}

BlockingOmpTeam::~BlockingOmpTeam() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  holder_.join();
}
#endif

void adapt_wait_policy() {
  static const bool adaptable = is_adaptable();
  if (!adaptable) return;
  thread_local Clock::time_point next;
  const Clock::time_point now = Clock::now();
  if (now < next) return;
  next = now + std::chrono::duration_cast<Clock::duration>(sample_interval);
  wait_policy().update(now);
}

bool cpus_are_contended() { return wait_policy().contended(); }

}  // namespace tessera::detail
