#include "tests/support/fake_gpu/pinned_memory.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace tessera::test::fake_gpu {

namespace {

constexpr size_t alignment = 64;

struct Pinned {
  size_t bytes;
  std::shared_ptr<const void> memory;
};

struct Table {
  std::mutex mutex;
  std::map<const char*, Pinned> blocks;

  /// Returns the block that contains an address, or null.
  Pinned* find(const void* address) {
    const auto* const at = static_cast<const char*>(address);
    auto after = blocks.upper_bound(at);
    if (after == blocks.begin()) return nullptr;
    auto& [begin, block] = *--after;
    return at < begin + block.bytes ? &block : nullptr;
  }
};

/// Never destroyed: tensors may outlive static objects.
Table& table() {
  static auto* const instance = new Table;
  return *instance;
}

void give_back_pinned(void* data) {
  std::shared_ptr<const void> memory;  // freed outside of the lock
  const std::lock_guard lock(table().mutex);
  const auto found = table().blocks.find(static_cast<char*>(data));
  memory = std::move(found->second.memory);
  table().blocks.erase(found);
}

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::kCPU};
    const size_t size = (bytes + alignment - 1) / alignment * alignment;
    void* const data = std::aligned_alloc(alignment, size);
    if (!data) throw std::bad_alloc();
    const auto free = [size](void* memory) {
      std::memset(memory, 0xff, size);
      std::free(memory);
    };
    const std::lock_guard lock(table().mutex);
    table().blocks[static_cast<char*>(data)] = {size, std::shared_ptr<void>(data, free)};
    return {data, data, &give_back_pinned, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back_pinned; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

c10::Allocator& pinned_allocator() {
  static auto* const allocator = new PinnedAllocator;
  return *allocator;
}

bool is_pinned(const void* address) {
  const std::lock_guard lock(table().mutex);
  return table().find(address) != nullptr;
}

std::shared_ptr<const void> hold_pinned(const void* address) {
  const std::lock_guard lock(table().mutex);
  const Pinned* const block = table().find(address);
  return block ? block->memory : nullptr;
}

}  // namespace tessera::test::fake_gpu
