#include <tessera/framework/tensor/internal/host_allocator.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include <c10/core/CPUAllocator.h>

#include <tessera/framework/comm/cpu/result_buffers.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/memory_planner.hpp>

namespace tessera::detail {
namespace {

/// Requests below this size go straight to the usual allocator, whose free lists are as fast.
constexpr size_t smallest = 1024;

struct Watch {
  void* context = nullptr;
  void (*done)(void*) = nullptr;
  std::unique_ptr<Watch> before = {};
};

struct Watches {
  std::mutex mutex;
  std::unordered_map<void*, Watch> at;

  std::optional<Watch> take(void* data) {
    const std::lock_guard lock(mutex);
    const auto it = at.find(data);
    if (it == at.end()) return std::nullopt;
    Watch watch = std::move(it->second);
    if (watch.before) {
      it->second = std::move(*watch.before);
    } else {
      at.erase(it);
    }
    return watch;
  }
};

/// Never destroyed: objects that live until the program ends may still free memory.
Watches& watches() {
  static auto* const all = new Watches;
  return *all;
}

void free_watched(void* data) {
  const std::optional<Watch> watch = watches().take(data);
  if (watch) watch->done(watch->context);
}

/// Allocator that serves memory of a MemoryPlanner run and counts it for DeviceMemory; all other
/// requests go to the usual allocator.
class HookedAllocator final : public c10::Allocator {
 public:
  explicit HookedAllocator(c10::Allocator& usual) { usual_ = &usual; }
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes < smallest) return usual_->allocate(bytes);
    return DeviceMemory::counted(MemoryPlanner::allocate(bytes, *usual_), bytes);
  }
  bool is_simple_data_ptr(const c10::DataPtr& data) const override {
    return data.get_deleter() != &free_watched && usual_->is_simple_data_ptr(data);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_raw; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    usual_->copy_data(to, from, bytes);
  }

 private:
  /// Frees memory of which only the address is known.
  static void free_raw(void* data) {
    const std::optional<Watch> watch = watches().take(data);
    if (watch) return watch->done(watch->context);
    usual_->raw_deleter()(data);
  }

  inline static c10::Allocator* usual_ = nullptr;
};

/// Installs the allocator during static initialization, before any thread allocates.
[[maybe_unused]] const bool hooked = [] {
  static auto* const allocator = new HookedAllocator(*c10::GetCPUAllocator());
  c10::SetCPUAllocator(allocator);
  ResultBuffers::count_with(&DeviceMemory::counted);
  return true;
}();

}  // namespace

c10::DataPtr watched_memory(void* data, void* context, void (*done)(void*)) {
  Watches& all = watches();
  const std::lock_guard lock(all.mutex);
  const auto [it, inserted] = all.at.try_emplace(data);
  Watch watch{context, done};
  if (!inserted) watch.before = std::make_unique<Watch>(std::move(it->second));
  it->second = std::move(watch);
  return {data, data, &free_watched, c10::Device(c10::DeviceType::CPU)};
}

void* watch_context(const void* data, void (*done)(void*)) {
  Watches& all = watches();
  const std::lock_guard lock(all.mutex);
  const auto it = all.at.find(const_cast<void*>(data));
  return it != all.at.end() && it->second.done == done ? it->second.context : nullptr;
}

}  // namespace tessera::detail
