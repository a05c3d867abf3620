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

constexpr CrowdJudge::Seconds between_looks{0.1};
constexpr CrowdJudge::Seconds calm_enough{2};
constexpr double crowded_share = 0.1;
constexpr double share_of_others = 0.4;
constexpr double calm_share = 0.02;

/// How long this thread was ready to run and no processor was free, since it began; nothing where
/// the kernel does not say.
std::optional<CrowdJudge::Seconds> waited_by_thread() {
  std::ifstream file("/proc/thread-self/schedstat");
  int64_t ran = 0;
  int64_t waited = 0;
  if (!(file >> ran >> waited)) return std::nullopt;
  return std::chrono::nanoseconds(waited);
}

/// What all programs had of the processors since the machine began.
CrowdJudge::Seconds used_by_all() {
  std::ifstream file("/proc/stat");
  std::string word;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0;
  file >> word >> user >> nice >> system >> idle >> waiting >> interrupts >> soft;
  static const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return CrowdJudge::Seconds((user + nice + system + interrupts + soft) / ticks);
}

/// What this program had of them.
CrowdJudge::Seconds used_by_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return CrowdJudge::Seconds(seconds(usage.ru_utime) + seconds(usage.ru_stime));
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

bool left_to_us() {
  return !is_set("OMP_WAIT_POLICY") && !is_set("GOMP_SPINCOUNT") && omp_get_max_threads() > 1;
}

/// What the process' threads are told; one thread at a time looks.
class WaitPolicy {
 public:
  void look(Clock::time_point now) {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock) return;
    const auto waited = waited_by_thread();
    if (!waited) return;
    const CrowdJudge::Seconds others = used_by_all() - used_by_us();
    // Another thread's account begins elsewhere.
    if (thread_ == std::this_thread::get_id()) {
      judge_.note({now - time_, *waited - waited_, others - others_});
    }
    thread_ = std::this_thread::get_id();
    time_ = now;
    waited_ = *waited;
    others_ = others;
    if (judge_.crowded() == static_cast<bool>(threads_)) return;
    threads_ = judge_.crowded() ? std::make_unique<SleepyThreads>() : nullptr;
  }
  bool crowded() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return judge_.crowded();
  }

 private:
  mutable std::mutex mutex_;
  std::thread::id thread_;
  Clock::time_point time_;
  CrowdJudge::Seconds waited_{0};
  CrowdJudge::Seconds others_{0};
  CrowdJudge judge_;
  std::unique_ptr<SleepyThreads> threads_;
};

/// Never destroyed: at the program's end nobody waits for threads that sleep.
WaitPolicy& wait_policy() {
  static auto* policy = new WaitPolicy;
  return *policy;
}

}  // namespace

void CrowdJudge::note(const WaitSample& sample) {
  const double share = sample.waited / sample.time;
  const bool waits = share >= crowded_share && sample.others / sample.time >= share_of_others;
  // Once is what the end of another program's work costs, whose threads still look for more.
  if (waits && waited_before_) crowded_ = true;
  waited_before_ = waits;
  calm_ = share < calm_share ? calm_ + sample.time : Seconds{0};
  if (calm_ >= calm_enough) crowded_ = false;
}

SleepyThreads::SleepyThreads() {
  const int workers = omp_get_max_threads();
  const int team = std::max(2, omp_get_num_procs() - workers + 2);
  holder_ = std::thread([this, team] {
#pragma omp parallel num_threads(team)
    {
      // An empty region would be left out by the compiler.
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

SleepyThreads::~SleepyThreads() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  holder_.join();
}

void adapt_wait_policy() {
  static const bool ours = left_to_us();
  if (!ours) return;
  thread_local Clock::time_point next;
  const Clock::time_point now = Clock::now();
  if (now < next) return;
  next = now + std::chrono::duration_cast<Clock::duration>(between_looks);
  wait_policy().look(now);
}

bool machine_is_crowded() { return wait_policy().crowded(); }

}  // namespace tessera::detail
