#pragma once

#include <cstdint>
#include <memory>

namespace tessera::test {

/// Counts the bytes that ATen's host allocator hands out in this thread during its lifetime. The
/// count is complete only if ATen runs in one thread.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;
  /// Returns the bytes handed out since construction and not freed.
  int64_t held() const;

 private:
  struct Reporter;
  std::shared_ptr<Reporter> reporter_;
};

}  // namespace tessera::test
