#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/StreamGuard.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>

#include "tests/support/fake_gpu/counters.hpp"
#include "tests/support/fake_gpu/device.hpp"
#include "tests/support/fake_gpu/fallback.hpp"
#include "tests/support/fake_gpu/kernel.hpp"
#include "tests/support/fake_gpu/memory.hpp"
#include "tests/support/fake_gpu/pinned_memory.hpp"
#include "tests/support/fake_gpu/recording.hpp"

namespace tessera::test::fake_gpu {

using namespace detail;

namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex before = current_device();
    set_current_device(device);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return exchangeDevice(device);
  }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  c10::Device getDeviceFromPtr(void* data) const override {
    return {c10::kPrivateUse1, gpu_of(data)};
  }
};

class FakeGraph final : public GpuGraph {
 public:
  explicit FakeGraph(c10::Stream stream) : recording_(begin_recording(stream)) {}
  ~FakeGraph() override { give_up(*recording_); }
  void end() override { end_recording(*recording_); }
  void replay(const c10::Stream& stream) const override { fake_gpu::replay(recording_, stream); }

 private:
  const std::shared_ptr<Recording> recording_;
};

class FakeGpus final : public Accelerator {
 public:
  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  int count() const override { return device_count(); }
  std::string unavailable_reason() const override { return "TESSERA_FAKE_GPUS is 0"; }
  void load() const override {
    ++counts().loads;
    c10::register_privateuse1_backend("fake_gpu");
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    c10::SetAllocator(c10::kPrivateUse1, &gpu_allocator());
    at::globalContext().lazyInitDevice(c10::kPrivateUse1);
    register_kernels();
  }
  void launch(const DeviceKernel& kernel, const c10::Stream& stream, uint64_t count,
              const void* parameters) const override {
    // Addresses of GPU memory among the parameters are translated to those that kernels use.
    std::vector<const void*> words(kernel.parameter_bytes / sizeof(void*));
    std::memcpy(words.data(), parameters, kernel.parameter_bytes);
    for (const void*& word : words) {
      if (gpu_of(word) == stream.device_index()) word = inside(word);
    }
    const auto body = [words, count, on_host = kernel.on_host](Values&) {
      // Runs the last index first, as a GPU may.
      for (uint64_t i = count; i-- > 0;) on_host(words.data(), i);
    };
    const c10::StreamGuard guard(stream);
    run_kernel(stream.device(), kernel.name, {}, body);
  }
  std::unique_ptr<GpuGraph> capture_graph(const c10::Stream& stream) const override {
    return std::make_unique<FakeGraph>(stream);
  }
};

int read_count() {
  const char* const text = std::getenv("TESSERA_FAKE_GPUS");
  if (!text || !*text) return 0;
  const int count = std::atoi(text);
  if (count < 0 || count > max_gpus) {
    throw ConfigError("TESSERA_FAKE_GPUS", str("it is a number from 0 to ", int(max_gpus)),
                      std::string("\"") + text + "\"", "set another one or unset it");
  }
  return count;
}

/// Registers the fake GPUs in place of CUDA when this library is loaded.
[[maybe_unused]] const bool is_registered = [] {
  const char* const text = std::getenv("TESSERA_FAKE_GPUS");
  if (text && *text) use_accelerator(std::make_unique<FakeGpus>());
  return true;
}();

}  // namespace

c10::DeviceIndex device_count() {
  static const int count = read_count();
  return static_cast<c10::DeviceIndex>(count);
}

void check_index(c10::DeviceIndex index) {
  TORCH_CHECK(index >= 0 && index < device_count(), "there is no cuda:", int(index), " among ",
              int(device_count()), " fake GPUs");
}

}  // namespace tessera::test::fake_gpu
