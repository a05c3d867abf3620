#pragma once

#include <cstdint>
#include <memory>

namespace tessera::test {

/// While alive, counts the bytes that ATen's host allocator hands out in this thread. Have ATen run
/// in one thread for the count to be whole.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;
  /// Bytes handed out and not given back since construction.
  int64_t held() const;

 private:
  struct Reporter;
  std::shared_ptr<Reporter> reporter_;
};

}  // namespace tessera::test
