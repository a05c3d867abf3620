#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>

#include <cstdlib>
#include <iostream>

#include <catch2/catch.hpp>

namespace tessera::test {

using namespace detail;

namespace {

/// The exit code that ctest counts as a skipped test.
constexpr int skipped = 77;

/// Skips the program if the machine has no GPU, instead of passing.
class SkipWithoutDevice final : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;
  void testRunStarting(const Catch::TestRunInfo&) override {
    if (gpu_count() > 0) return;
    try {
      gpu(0);
    } catch (const ConfigError& e) {
      std::cout << "skipped: \"gpu\": " << e.what() << std::endl;
    }
    std::_Exit(skipped);
  }
};

CATCH_REGISTER_LISTENER(SkipWithoutDevice)

}  // namespace
}  // namespace tessera::test
