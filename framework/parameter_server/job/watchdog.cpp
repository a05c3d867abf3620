#include <tessera/framework/parameter_server/job/watchdog.hpp>

#include <condition_variable>
#include <utility>

namespace tessera::detail {

using std::chrono::steady_clock;

namespace {
constexpr std::chrono::milliseconds check_interval{100};
}

Watchdog::Watchdog()
    : thread_([this](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any pause;
        std::unique_lock lock(mutex);
        while (!stop.stop_requested()) {
          pause.wait_for(lock, stop, check_interval, [] { return false; });
          check_deadlines();
        }
      }) {}

Watchdog::~Watchdog() = default;

void Watchdog::check_deadlines() {
  const std::lock_guard lock(mutex_);
  const auto now = steady_clock::now();
  for (Call* call : calls_) {
    if (call->ended_ || now - call->last_reset_ <= call->limit_) continue;
    call->ended_ = true;
    call->end_();
  }
}

Watchdog::Call::Call(Watchdog& watch, std::chrono::milliseconds limit, std::function<void()> end)
    : watch_(watch), limit_(limit), end_(std::move(end)) {
  const std::lock_guard lock(watch_.mutex_);
  watch_.calls_.push_back(this);
}

Watchdog::Call::~Call() {
  const std::lock_guard lock(watch_.mutex_);
  watch_.calls_.remove(this);
}

void Watchdog::Call::reset_deadline() {
  const std::lock_guard lock(watch_.mutex_);
  last_reset_ = steady_clock::now();
}

void Watchdog::Call::set_limit(std::chrono::milliseconds limit) {
  const std::lock_guard lock(watch_.mutex_);
  limit_ = limit;
}

bool Watchdog::Call::ended() const {
  const std::lock_guard lock(watch_.mutex_);
  return ended_;
}

}  // namespace tessera::detail
