#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// A ring of bytes from one process to another: one writes, one reads. All counts are multiples of
/// `unit`.
class SharedRing {
 public:
  static constexpr size_t unit = 64;
  struct Head {
    alignas(unit) std::atomic<uint64_t> written;
    std::atomic<uint32_t> closed;
    alignas(unit) std::atomic<uint64_t> read;
  };

  SharedRing(Head* head, std::byte* memory, size_t bytes)
      : head_(head), memory_(memory), bytes_(bytes) {}
  /// Where the writer may write next, and how much without a gap.
  std::span<std::byte> room() const;
  void publish(size_t bytes) const;
  /// What the reader has not read, up to a gap.
  std::span<const std::byte> content() const;
  void release(size_t bytes) const;
  /// Told by the writer when it leaves.
  void close() const { head_->closed.store(1); }
  bool closed() const { return head_->closed.load() != 0; }

 private:
  Head* head_;
  std::byte* memory_;
  size_t bytes_;
};

/// The memory that the others of a host write to for one rank: a ring from each, and a bell. It has
/// no name, so that nothing is left of it when its processes are gone.
class ShmSegment {
 public:
  /// Makes memory for `rings` writers; `cookie` tells it from others. Throws std::system_error.
  ShmSegment(int rings, size_t ring_bytes, uint64_t cookie);
  /// Opens the memory of another process. Throws std::system_error; StateError if its cookie is
  /// another.
  ShmSegment(pid_t process, int descriptor, int rings, size_t ring_bytes, uint64_t cookie);
  ~ShmSegment();
  ShmSegment(const ShmSegment&) = delete;
  ShmSegment& operator=(const ShmSegment&) = delete;

  /// What other processes open; of no use once they have.
  int descriptor() const { return file_.get(); }
  void close_descriptor() { file_.reset(); }
  SharedRing ring(int writer) const;
  /// Wakes those who sleep on the bell, or are about to.
  void ring_bell() const;
  uint32_t bell() const;
  /// Sleeps until the bell was rung since it was `seen`, at most so long.
  void sleep(uint32_t seen, std::chrono::milliseconds most) const;

 private:
  struct Head;
  void map();
  Head& head() const { return *static_cast<Head*>(memory_); }

  FileDescriptor file_;
  size_t ring_bytes_;
  size_t bytes_;
  void* memory_ = nullptr;
};

}  // namespace tessera::detail
