#include <chrono>
#include <optional>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "tests/support/fake_gpu/counters.hpp"
#include "tests/support/fake_gpu/device.hpp"
#include "tests/support/fake_gpu/memory.hpp"
#include "tests/support/fake_gpu/recording.hpp"
#include "tests/support/fake_gpu/streams.hpp"

namespace tessera::test::fake_gpu {

namespace {

thread_local c10::DeviceIndex current_index = 0;

struct Event {
  c10::Stream stream;
  uint64_t position;
  std::optional<Mark> mark;  ///< position in a recording
  std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
};

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kPrivateUse1; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {c10::kPrivateUse1, current_index}; }
  void setDevice(c10::Device device) const override { set_current_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0) current_index = device.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }

  c10::Stream getStream(c10::Device device) const override {
    return current_stream(device.index());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return pool_stream(device.has_index() ? device.index() : current_index);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }

  void* getStreamNativeHandle(const c10::Stream stream) const override { return handle_of(stream); }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex,
              c10::EventFlag) const override {
    auto* const at = static_cast<Event*>(*event);
    const Event now{stream, last_position(stream), mark_of(stream)};
    if (at) {
      *at = now;
    } else {
      *event = new Event(now);
    }
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (!event) return;
    const Event at = *static_cast<Event*>(event);
    if (goes_behind(stream, at.mark)) return;
    if (at.stream == stream || is_done(at.stream, at.position)) return;
    enqueue(stream, [at] { return advance(at.stream, at.position); });
  }
  bool queryEvent(void* event) const override {
    if (!event) return true;
    const Event at = *static_cast<Event*>(event);
    refuse_mark(at.mark, "queryEvent");
    refuse_while_recording("queryEvent");
    if (is_done(at.stream, at.position)) return true;
    go_on(at.stream);
    return false;
  }
  void synchronizeEvent(void* event) const override {
    if (!event) return;
    const Event at = *static_cast<Event*>(event);
    refuse_mark(at.mark, "synchronizeEvent");
    count_wait("synchronizeEvent");
    finish(at.stream, at.position);
  }
  /// Returns the milliseconds between two events' records: kernels run when they are queued.
  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    const auto time = [](void* event) {
      refuse_mark(static_cast<Event*>(event)->mark, "elapsedTime");
      return static_cast<Event*>(event)->time;
    };
    return std::chrono::duration<double, std::milli>(time(second) - time(first)).count();
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }

  bool queryStream(const c10::Stream& stream) const override {
    refuse_on_recording(stream, "queryStream");
    refuse_while_recording("queryStream");
    if (is_done(stream, last_position(stream))) return true;
    go_on(stream);
    return false;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    refuse_on_recording(stream, "synchronizeStream");
    count_wait("synchronizeStream");
    finish(stream);
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    count_wait("synchronizeDevice");
    finish(device);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    record_use(data.get(), stream);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace

c10::DeviceIndex current_device() { return current_index; }

void set_current_device(c10::DeviceIndex index) {
  check_index(index);
  current_index = index;
}

}  // namespace tessera::test::fake_gpu
