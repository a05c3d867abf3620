#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// A ring of bytes from one process to another: one writes, one reads. All byte counts are
/// multiples of `unit`.
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
  /// Returns the contiguous space that the writer may write next.
  std::span<std::byte> room() const;
  void publish(size_t bytes) const;
  /// Returns the contiguous bytes that the reader may read next.
  std::span<const std::byte> content() const;
  void release(size_t bytes) const;
  /// Marks the ring as closed; called by the writer when it leaves.
  void close() const { head_->closed.store(1); }
  bool closed() const { return head_->closed.load() != 0; }

 private:
  Head* head_;
  std::byte* memory_;
  size_t bytes_;
};

/// Shared memory in which the other ranks of a host write to one rank: a ring from each, and a
/// bell. It has no name, so nothing is left of it when its processes have ended.
class ShmSegment {
 public:
  /// Creates memory for `rings` writers, identified by `cookie`. Throws std::system_error.
  ShmSegment(int rings, size_t ring_bytes, uint64_t cookie);
  /// Opens the memory of another process. Throws std::system_error; StateError if its size or
  /// cookie differs.
  ShmSegment(pid_t process, int descriptor, int rings, size_t ring_bytes, uint64_t cookie);
  ~ShmSegment();
  ShmSegment(const ShmSegment&) = delete;
  ShmSegment& operator=(const ShmSegment&) = delete;

  /// The descriptor that other processes open; not needed afterwards.
  int descriptor() const { return file_.get(); }
  void close_descriptor() { file_.reset(); }
  SharedRing ring(int writer) const;
  /// Wakes all threads in sleep(), and those about to enter it.
  void ring_bell() const;
  uint32_t bell() const;
  /// Sleeps until bell() differs from `seen`, at most `timeout`.
  void sleep(uint32_t seen, std::chrono::milliseconds timeout) const;

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
