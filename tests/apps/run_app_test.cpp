#include "apps/common/run_app.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <new>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/coordination/reported_failure.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace run_app_test {

using namespace tessera;
using namespace tessera::detail;
using namespace std::chrono_literals;

namespace {

/// Runs `body` as the main function of a program mnist.
int run_as_mnist(const std::function<int()>& body) {
  std::string path = "/some/where/mnist";
  char* argv[] = {path.data(), nullptr};
  return app::run_app(1, argv, [&](int, char**) { return body(); });
}

/// Returns the exit code and standard error of a program whose main function is `body`.
std::pair<int, std::string> outcome(const std::function<int()>& body) {
  std::ostringstream captured;
  std::streambuf* before = std::cerr.rdbuf(captured.rdbuf());
  const int code = run_as_mnist(body);
  std::cerr.rdbuf(before);
  return {code, captured.str()};
}

using Outcome = std::pair<int, std::string>;

/// Runs a main function in a process of its own. Returns its exit code, its standard error, and
/// what it reported to the others.
std::vector<std::string> end_of(const std::function<void()>& body) {
  const test::TempFolder folder;
  const std::string err = folder / "err", report = folder / "report";
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int to = ::open(err.c_str(), O_WRONLY | O_CREAT, 0600);
    if (to < 0 || ::dup2(to, STDERR_FILENO) < 0) ::_exit(99);
    set_failure_reporter([&](const std::string& what) { test::write_file(report, what); });
    ::_exit(run_as_mnist([&] {
      body();
      return 0;
    }));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  const bool reported = std::filesystem::exists(report);
  return {WIFEXITED(status) ? std::to_string(WEXITSTATUS(status)) : "a signal",
          test::read_file(err), reported ? test::read_file(report) : "nothing"};
}

}  // namespace

TEST_CASE("an application returns its main function's exit code", "[run_app]") {
  CHECK(outcome([] { return 0; }) == Outcome{0, ""});
  CHECK(outcome([] { return 3; }) == Outcome{3, ""});
}

TEST_CASE("a process ends after what its main function registered", "[run_app]") {
  const test::TempFolder folder;
  const std::string out = folder / "out";
  // The child would print again what is in the buffers.
  std::cout.flush();
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!std::freopen(out.c_str(), "w", stdout)) ::_exit(99);
    // It stands for the static objects of libraries.
    std::atexit([] { std::printf("libraries "); });
    std::exit(run_as_mnist([] {
      std::atexit([] { std::printf("left "); });
      std::printf("ran ");
      return 5;
    }));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 5);
  CHECK_THAT(test::read_file(out), Catch::StartsWith("ran left "));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(test::read_file(out) == "ran left ");
#endif
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

TEST_CASE("an exception that nothing can catch becomes one line and exit code 1", "[run_app]") {
  using Texts = std::vector<std::string>;
  const auto thread_throws = [] {
    std::thread([] { throw std::runtime_error("no\nway"); }).join();
  };
  const std::function<void()> allocate = [] { throw std::bad_alloc(); };
  const auto without_memory = [&]() noexcept { allocate(); };
  const std::string memory = "out of memory. To fix: use a smaller batch or model.";
  CHECK(end_of(thread_throws) == Texts{"1", "mnist: error: no\n", "no"});
  CHECK(end_of(without_memory) == Texts{"1", "mnist: error: " + memory + "\n", memory});
  const std::string called = "std::terminate() was called";
  CHECK(end_of([] { std::terminate(); }) == Texts{"1", "mnist: error: " + called + "\n", called});
  // Two threads at once still write one line.
  CHECK(end_of([&] {
          std::thread first(thread_throws), second(thread_throws);
          first.join();
          second.join();
        }) == Texts{"1", "mnist: error: no\n", "no"});
}

TEST_CASE("a process ends even if its report to the others fails or is stuck", "[run_app]") {
  const auto fails = [] {
    set_failure_reporter([](const std::string&) { throw std::bad_alloc(); });
    std::terminate();
  };
  CHECK(end_of(fails)[0] == "1");
  const auto stuck = [] {
    set_failure_reporter([](const std::string&) { std::this_thread::sleep_for(1h); });
    std::terminate();
  };
  const std::vector<std::string> end = end_of(stuck);
  CHECK(end[0] == "1");
  CHECK(end[1] == "mnist: error: std::terminate() was called\n");
}

TEST_CASE("a run ended by a signal says so and exits like a shell", "[run_app]") {
  const auto body = []() -> int { throw Interrupted(15, "fit", "SIGTERM in epoch 2", "--resume"); };
  CHECK(outcome(body) ==
        Outcome{143, "mnist: [fit] Received: SIGTERM in epoch 2. To fix: --resume.\n"});
}

}  // namespace run_app_test
