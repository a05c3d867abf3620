#include "tests/support/allocation_counter.hpp"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace tessera::test {

struct AllocationCounter::Reporter : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
    held += bytes;
  }
  void reportOutOfMemory(int64_t, size_t, size_t, c10::Device) override {}
  bool memoryProfilingEnabled() const override { return true; }

  int64_t held = 0;
};

AllocationCounter::AllocationCounter() : reporter_(std::make_shared<Reporter>()) {
  c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, reporter_);
}

AllocationCounter::~AllocationCounter() {
  c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE);
}

int64_t AllocationCounter::held() const { return reporter_->held; }

}  // namespace tessera::test
