// Part of each test program with libtorch: what a test case draws without a seed of its own is the
// same in each run and in any order of cases, and in a failure as in the run that looks for it.
#include <mutex>

#include <ATen/CPUGeneratorImpl.h>

// Listeners are declared on request alone, so this source takes no precompiled header.
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
