#include "apps/common/run_app.hpp"

#include <iostream>
#include <new>
#include <sstream>
#include <stdexcept>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace run_app_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Returns the exit code and standard error of a program whose main function is `body`.
std::pair<int, std::string> outcome(const std::function<int()>& body) {
  std::string path = "/some/where/mnist";
  char* argv[] = {path.data(), nullptr};
  std::ostringstream captured;
  std::streambuf* before = std::cerr.rdbuf(captured.rdbuf());
  const int code = app::run_app(1, argv, [&](int, char**) { return body(); });
  std::cerr.rdbuf(before);
  return {code, captured.str()};
}

using Outcome = std::pair<int, std::string>;

}  // namespace

TEST_CASE("an application returns its main function's exit code", "[run_app]") {
  CHECK(outcome([] { return 0; }) == Outcome{0, ""});
  CHECK(outcome([] { return 3; }) == Outcome{3, ""});
}

TEST_CASE("an exception becomes one line and exit code 1", "[run_app]") {
  CHECK(
      outcome([]() -> int { throw ConfigError("--mesh", "must be\nright", "a\tb", "mend it"); }) ==
      Outcome{1,
              "mnist: error: [--mesh] must be\\x0aright. Received: a\\x09b. To fix: mend it.\n"});
  CHECK(outcome([]() -> int { throw std::runtime_error("first\nstack\ntrace"); }) ==
        Outcome{1, "mnist: error: first\n"});
  CHECK(outcome([]() -> int { throw std::bad_alloc(); }) ==
        Outcome{1, "mnist: error: out of memory. To fix: use a smaller batch or model.\n"});
  CHECK(outcome([] { return static_cast<int>(at::empty({int64_t{1} << 58}).dim()); }) ==
        Outcome{1, "mnist: error: out of memory. To fix: use a smaller batch or model.\n"});
  CHECK(outcome([]() -> int { throw 3; }) ==
        Outcome{1, "mnist: error: an exception of unknown type\n"});
}

TEST_CASE("a run ended by a signal says so and exits like a shell", "[run_app]") {
  const auto body = []() -> int { throw Interrupted(15, "fit", "SIGTERM in epoch 2", "--resume"); };
  CHECK(outcome(body) ==
        Outcome{143, "mnist: [fit] Received: SIGTERM in epoch 2. To fix: --resume.\n"});
}

}  // namespace run_app_test
