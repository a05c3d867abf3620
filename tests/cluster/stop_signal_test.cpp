#include <tessera/framework/cluster/stop_signal.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/support/catch.hpp"

namespace stop_signal_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Runs `body` in a process and returns its status.
int status_of(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    for (int number : {SIGTERM, SIGINT}) signal(number, SIG_DFL);
    clear_stop_signal();
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("the first signal is kept until it is cleared", "[stop_signal]") {
  const StopSignals signals;
  clear_stop_signal();
  CHECK(stop_signal() == 0);
  raise(SIGTERM);
  CHECK(stop_signal() == SIGTERM);
  raise(SIGINT);
  CHECK(stop_signal() == SIGTERM);
  clear_stop_signal();
  CHECK(stop_signal() == 0);
  raise(SIGINT);
  CHECK(stop_signal() == SIGINT);
  clear_stop_signal();
}

TEST_CASE("a second signal of the same kind ends the process", "[stop_signal]") {
  for (int number : {SIGTERM, SIGINT}) {
    const int status = status_of([&] {
      const StopSignals signals;
      raise(number);
      raise(number);
    });
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == number);
  }
  CHECK(status_of([] {
          const StopSignals signals;
          raise(SIGTERM);
          raise(SIGINT);
        }) == 0);
}

TEST_CASE("the previous signal handlers are restored", "[stop_signal]") {
  const int status = status_of([] {
    { const StopSignals signals; }
    raise(SIGTERM);
  });
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
}

}  // namespace stop_signal_test
