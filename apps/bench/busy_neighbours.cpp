#include "apps/bench/busy_neighbours.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include <tessera/framework/base/error.hpp>

namespace tessera::bench {

namespace {

constexpr int least_priority = 19;

[[noreturn]] void never_rest() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  ::setpriority(PRIO_PROCESS, 0, least_priority);
  for (volatile bool on = true; on;) {
  }
  ::_exit(0);
}

}  // namespace

BusyNeighbours::BusyNeighbours() {
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) {
      throw ConfigError("--busy", "a process for each processor", std::strerror(errno),
                        "stop other programs of this user");
    }
    if (pid == 0) never_rest();
    pids_.push_back(pid);
  }
}

BusyNeighbours::~BusyNeighbours() {
  for (const pid_t pid : pids_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

}  // namespace tessera::bench
