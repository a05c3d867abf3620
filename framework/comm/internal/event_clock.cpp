#include <tessera/framework/comm/internal/event_clock.hpp>

#include <deque>
#include <mutex>

#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>

namespace tessera::detail {
namespace {

class EventClock final : public GpuClock {
 public:
  explicit EventClock(const Gpu& gpu) : gpu_(gpu) {}

  int64_t mark() override {
    const c10::DeviceGuard guard(gpu_.device);
    const std::lock_guard lock(mutex_);
    events_.emplace_back(gpu_.device.type(), c10::EventFlag::BACKEND_DEFAULT);
    events_.back().record(gpu_.compute());
    return static_cast<int64_t>(events_.size()) - 1;
  }
  std::vector<int64_t> times() override {
    const std::lock_guard lock(mutex_);
    std::vector<int64_t> times;
    for (c10::Event& event : events_) {
      event.synchronize();
      times.push_back(static_cast<int64_t>(events_.front().elapsedTime(event) * 1e6));
    }
    return times;
  }
  void clear() override {
    const std::lock_guard lock(mutex_);
    events_.clear();
  }

 private:
  Gpu gpu_;
  std::mutex mutex_;
  std::deque<c10::Event> events_;
};

}  // namespace

void use_event_clock(const Gpu& gpu) {
  // Never destroyed: at exit the GPU runtime may be gone already.
  gpu_clock = new EventClock(gpu);
}

}  // namespace tessera::detail
