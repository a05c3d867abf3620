// Linked into each test program with libtorch: seeds ATen for each test case, so that its numbers
// are the same in each run, in any order of cases and when it runs alone.
#include <mutex>

#include <ATen/CPUGeneratorImpl.h>

// Listeners are declared only on request, so this source takes no precompiled header.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <catch2/catch.hpp>

namespace {

struct SeededCases final : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo&) override {
    at::Generator draws = at::detail::getDefaultCPUGenerator();
    const std::lock_guard lock(draws.mutex());
    draws.set_current_seed(1);
  }
};

CATCH_REGISTER_LISTENER(SeededCases)

}  // namespace
