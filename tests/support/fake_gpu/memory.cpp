#include "tests/support/fake_gpu/memory.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <c10/util/Exception.h>

#include "tests/support/fake_gpu/counters.hpp"
#include "tests/support/fake_gpu/device.hpp"
#include "tests/support/fake_gpu/fake_gpu.hpp"
#include "tests/support/fake_gpu/recording.hpp"
#include "tests/support/fake_gpu/streams.hpp"

namespace tessera::test::fake_gpu {

namespace {

/// Reserved addresses; pages are allocated when written.
constexpr size_t region_bytes = size_t{1} << 36;
constexpr size_t smallest_block = 512;
/// NaN in every floating dtype, and an implausible integer.
constexpr int poison = 0xff;

struct Block {
  size_t bytes;
  c10::Stream stream;  ///< stream that allocated it, which may use it without record_use()
  uint64_t pool;       ///< pool of its recording; 0 for none
  std::vector<c10::Stream> others;
};

/// A GPU's memory and its blocks.
class Region {
 public:
  Region() {
    const int file = memfd_create("fake_gpu", 0);
    TORCH_CHECK(file >= 0 && ftruncate(file, off_t(region_bytes)) == 0,
                "the fake GPU gets no memory: ", std::strerror(errno));
    outer_ = map(file, PROT_NONE);
    inner_ = map(file, PROT_READ | PROT_WRITE);
    close(file);
  }

  bool holds(const void* address) const { return in(outer_, address); }
  bool holds_inside(const void* address) const { return in(inner_, address); }
  char* inside(const void* address) const {
    return inner_ + (static_cast<const char*>(address) - outer_);
  }

  void* allocate(size_t bytes, c10::Stream stream, uint64_t pool) {
    const size_t size = std::max(smallest_block, rounded(bytes));
    if (pool > 0) pools_.insert(pool);
    std::vector<char*>& free = free_[{pool, stream.id(), size}];
    char* address = nullptr;
    if (free.empty()) {
      TORCH_CHECK(size <= region_bytes - used_, "the fake GPU is out of memory");
      address = outer_ + used_;
      used_ += size;
    } else {
      address = free.back();
      free.pop_back();
    }
    used_blocks_.insert_or_assign(address, Block{size, stream, pool, {}});
    stat_.increase(size);
    return address;
  }
  c10::CachingAllocator::Stat& stat() { return stat_; }

  void record_use(const void* address, c10::Stream stream) {
    const auto found = used_blocks_.find(static_cast<const char*>(address));
    if (found == used_blocks_.end() || found->second.stream == stream) return;
    found->second.others.push_back(stream);
  }

  void give_back(void* data) {
    auto* const address = static_cast<char*>(data);
    const auto found = used_blocks_.find(address);
    Block block = std::move(found->second);
    used_blocks_.erase(found);
    stat_.decrease(block.bytes);
    if (block.pool > 0 && pool_of(block.stream) == block.pool) {
      // While its graph is recorded: the streams' queued work is older than the block.
      block.others.clear();
    } else {
      // The block's own stream is ordered with the next user of the block.
      block.others.push_back(block.stream);
    }
    const auto later = std::shared_ptr<void>(nullptr, [this, address, block](void*) {
      recycle(address, {block.pool, block.stream.id(), block.bytes});
    });
    for (c10::Stream stream : block.others) {
      if (!is_done(stream, last_position(stream))) enqueue(stream, [later] { return true; });
    }
  }

  void release(uint64_t pool) {
    pools_.erase(pool);
    auto next = free_.lower_bound({pool, 0, 0});
    while (next != free_.end() && std::get<0>(next->first) == pool) {
      for (char* address : next->second) recycle(address, next->first);
      next = free_.erase(next);
    }
  }

 private:
  /// Key of free blocks: their pool, their stream, their bytes.
  using Shelf = std::tuple<uint64_t, c10::StreamId, size_t>;

  /// Overwrites a block and keeps it for the next allocation: any, if its pool was released.
  void recycle(char* address, Shelf shelf) {
    auto& [pool, stream, bytes] = shelf;
    if (pools_.count(pool) == 0) pool = 0;
    std::memset(inside(address), poison, bytes);
    free_[shelf].push_back(address);
  }

  static char* map(int file, int protection) {
    void* const at = mmap(nullptr, region_bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    TORCH_CHECK(at != MAP_FAILED, "the fake GPU gets no addresses: ", std::strerror(errno));
    return static_cast<char*>(at);
  }
  static bool in(const char* begin, const void* address) {
    const auto* const at = static_cast<const char*>(address);
    return begin <= at && at < begin + region_bytes;
  }
  /// Rounds to one of eight sizes for each power of two.
  static size_t rounded(size_t bytes) {
    const size_t step = std::max(smallest_block, std::bit_floor(bytes) / 8);
    return (bytes + step - 1) / step * step;
  }

  char* outer_;
  char* inner_;
  size_t used_ = 0;
  c10::CachingAllocator::Stat stat_;  ///< bytes of blocks in use
  std::map<Shelf, std::vector<char*>> free_;
  std::set<uint64_t> pools_;  ///< pools of live recordings
  std::unordered_map<const char*, Block> used_blocks_;
};

/// Never destroyed: tensors may outlive static objects.
std::array<Region*, max_gpus> regions{};

Region& region(c10::DeviceIndex device) {
  Region*& at = regions[static_cast<size_t>(device)];
  if (!at) at = new Region;
  return *at;
}

struct sigaction handler_before;

void say_host_access(int signal, siginfo_t* info, void*) {
  const c10::DeviceIndex gpu = gpu_of(info->si_addr);
  if (gpu >= 0) {
    std::array<char, 200> line{};
    const int length = std::snprintf(line.data(), line.size(),
                                     "fake GPU: the host touched memory of cuda:%d at %p; the last "
                                     "operation was %s\n",
                                     gpu, info->si_addr, last_op());
    if (write(STDERR_FILENO, line.data(), size_t(length)) < 0) _exit(1);
  }
  // After the return the access repeats and reaches the previous handler.
  sigaction(signal, &handler_before, nullptr);
}

void give_back(void* data) {
  const c10::DeviceIndex gpu = gpu_of(data);
  const std::lock_guard lock(lock_of(gpu));
  region(gpu).give_back(data);
}

class GpuAllocator final : public c10::DeviceAllocator {
 public:
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    record_use(data.get(), stream);
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const std::lock_guard lock(lock_of(device));
    c10::CachingDeviceAllocator::DeviceStats stats;
    const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    stats.allocated_bytes[all] = region(device).stat();
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex device) override {
    const std::lock_guard lock(lock_of(device));
    region(device).stat().reset_peak();
  }

  c10::DataPtr allocate(size_t bytes) override {
    catch_host_access();
    const c10::DeviceIndex gpu = current_device();
    const c10::Device device(c10::kPrivateUse1, gpu);
    if (bytes == 0) return {nullptr, device};
    ++counts().allocations;
    const std::lock_guard lock(lock_of(gpu));
    const c10::Stream stream = current_stream(gpu);
    void* const data = region(gpu).allocate(bytes, stream, pool_of(stream));
    return {data, data, &give_back, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    const c10::DeviceIndex gpu = gpu_of(to);
    refuse_on_recording(current_stream(gpu), "copy_data");
    const std::lock_guard lock(lock_of(gpu));
    std::memcpy(inside(to), inside(from), bytes);
  }
};

}  // namespace

c10::DeviceAllocator& gpu_allocator() {
  static auto* const allocator = new GpuAllocator;
  return *allocator;
}

c10::DeviceIndex gpu_of(const void* address) {
  for (size_t i = 0; i < regions.size(); ++i) {
    if (regions[i] && regions[i]->holds(address)) return static_cast<c10::DeviceIndex>(i);
  }
  return -1;
}

void* inside(const void* address) {
  if (!address) return nullptr;
  const c10::DeviceIndex gpu = gpu_of(address);
  TORCH_CHECK(gpu >= 0, "a GPU was given an address of the host");
  return region(gpu).inside(address);
}

bool is_inside(const void* address) {
  for (const Region* region : regions) {
    if (region && region->holds_inside(address)) return true;
  }
  return false;
}

void record_use(const void* address, c10::Stream stream) {
  if (!address) return;
  const c10::DeviceIndex gpu = gpu_of(address);
  const std::lock_guard lock(lock_of(gpu));
  region(gpu).record_use(address, stream);
}

void release_pool(c10::DeviceIndex device, uint64_t pool) {
  const std::lock_guard lock(lock_of(device));
  region(device).release(pool);
}

void catch_host_access() {
  struct sigaction now {};
  sigaction(SIGSEGV, nullptr, &now);
  if (now.sa_sigaction == &say_host_access) return;
  handler_before = now;
  struct sigaction ours {};
  ours.sa_sigaction = &say_host_access;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &ours, nullptr);
}

}  // namespace tessera::test::fake_gpu
