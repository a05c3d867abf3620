#include <tessera/framework/comm/cpu/shm_segment.hpp>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

void check(bool ok, const char* what) {
  if (!ok) throw std::system_error(errno, std::generic_category(), what);
}

size_t ring_space(size_t ring_bytes) { return sizeof(SharedRing::Head) + ring_bytes; }

}  // namespace

struct alignas(SharedRing::unit) ShmSegment::Head {
  uint64_t cookie;
  alignas(SharedRing::unit) std::atomic<uint32_t> bell;
  std::atomic<uint32_t> sleepers;
};

std::span<std::byte> SharedRing::room() const {
  const uint64_t written = head_->written.load(std::memory_order_relaxed);
  const size_t free = bytes_ - (written - head_->read.load(std::memory_order_acquire));
  const size_t at = written % bytes_;
  return {memory_ + at, std::min(free, bytes_ - at)};
}

void SharedRing::publish(size_t bytes) const {
  const uint64_t written = head_->written.load(std::memory_order_relaxed);
  head_->written.store(written + bytes, std::memory_order_release);
}

std::span<const std::byte> SharedRing::content() const {
  const uint64_t read = head_->read.load(std::memory_order_relaxed);
  const size_t used = head_->written.load(std::memory_order_acquire) - read;
  const size_t at = read % bytes_;
  return {memory_ + at, std::min(used, bytes_ - at)};
}

void SharedRing::release(size_t bytes) const {
  const uint64_t read = head_->read.load(std::memory_order_relaxed);
  head_->read.store(read + bytes, std::memory_order_release);
}

ShmSegment::ShmSegment(int rings, size_t ring_bytes, uint64_t cookie)
    : file_(memfd_create("tessera", MFD_CLOEXEC)),
      ring_bytes_(ring_bytes),
      bytes_(sizeof(Head) + static_cast<size_t>(rings) * ring_space(ring_bytes)) {
  check(file_.get() >= 0, "memfd_create");
  check(ftruncate(file_.get(), static_cast<off_t>(bytes_)) == 0, "ftruncate");
  map();
  // A new file is all zeros, the initial value of everything else.
  head().cookie = cookie;
}

ShmSegment::ShmSegment(pid_t process, int descriptor, int rings, size_t ring_bytes, uint64_t cookie)
    : file_(open(str("/proc/", process, "/fd/", descriptor).c_str(), O_RDWR | O_CLOEXEC)),
      ring_bytes_(ring_bytes),
      bytes_(sizeof(Head) + static_cast<size_t>(rings) * ring_space(ring_bytes)) {
  check(file_.get() >= 0, "open");
  struct stat info {};
  check(fstat(file_.get(), &info) == 0, "fstat");
  if (info.st_size != static_cast<off_t>(bytes_)) throw StateError("another file");
  map();
  const bool known = head().cookie == cookie;
  close_descriptor();
  if (known) return;
  munmap(memory_, bytes_);
  throw StateError("another segment");
}

ShmSegment::~ShmSegment() { munmap(memory_, bytes_); }

void ShmSegment::map() {
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  check(memory_ != MAP_FAILED, "mmap");
}

SharedRing ShmSegment::ring(int writer) const {
  std::byte* address = static_cast<std::byte*>(memory_) + sizeof(Head) +
                       static_cast<size_t>(writer) * ring_space(ring_bytes_);
  return {reinterpret_cast<SharedRing::Head*>(address), address + sizeof(SharedRing::Head),
          ring_bytes_};
}

void ShmSegment::ring_bell() const {
  head().bell.fetch_add(1);
  if (head().sleepers.load() == 0) return;
  syscall(SYS_futex, &head().bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

uint32_t ShmSegment::bell() const { return head().bell.load(); }

void ShmSegment::sleep(uint32_t seen, std::chrono::milliseconds timeout) const {
  const timespec time{timeout.count() / 1000, timeout.count() % 1000 * 1000000};
  head().sleepers.fetch_add(1);
  syscall(SYS_futex, &head().bell, FUTEX_WAIT, seen, &time, nullptr, 0);
  head().sleepers.fetch_sub(1);
}

}  // namespace tessera::detail
