#include <tessera/framework/tensor/internal/wait_policy.hpp>

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <optional>

#include <tessera/framework/tensor/internal/execution.hpp>

namespace tessera::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr CrowdJudge::Seconds sample{0.1};
constexpr CrowdJudge::Seconds calm_enough{2};
constexpr double crowded_share = 0.1;
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

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

bool left_to_us() {
  return !is_set("OMP_WAIT_POLICY") && !is_set("GOMP_SPINCOUNT") && worker_count() > 1;
}

std::atomic<bool> crowded = false;

/// What the process' threads are told; one thread at a time looks.
class WaitPolicy {
 public:
  void look(Clock::time_point now) {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock) return;
    const auto waited = waited_by_thread();
    if (!waited) return;
    // Another thread's account begins elsewhere.
    if (thread_ == std::this_thread::get_id()) judge_.note(now - time_, *waited - waited_);
    thread_ = std::this_thread::get_id();
    time_ = now;
    waited_ = *waited;
    if (judge_.crowded() == static_cast<bool>(threads_)) return;
    threads_ = judge_.crowded() ? std::make_unique<SleepyThreads>() : nullptr;
    crowded = judge_.crowded();
  }

 private:
  std::mutex mutex_;
  std::thread::id thread_;
  Clock::time_point time_;
  CrowdJudge::Seconds waited_{0};
  CrowdJudge judge_;
  std::unique_ptr<SleepyThreads> threads_;
};

}  // namespace

void CrowdJudge::note(Seconds time, Seconds waited) {
  const double share = waited / time;
  const bool waits = share >= crowded_share;
  // Once is what the end of another program's work costs, whose threads still look for more.
  if (waits && waited_before_) crowded_ = true;
  waited_before_ = waits;
  calm_ = share < calm_share ? calm_ + time : Seconds{0};
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
  next = now + std::chrono::duration_cast<Clock::duration>(sample);
  // Never destroyed: at the program's end nobody waits for threads that sleep.
  static auto* policy = new WaitPolicy;
  policy->look(now);
}

bool machine_is_crowded() { return crowded; }

}  // namespace tessera::detail
