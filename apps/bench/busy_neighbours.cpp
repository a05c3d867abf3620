#include "apps/bench/busy_neighbours.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <tessera/framework/base/error.hpp>

namespace tessera::bench {

namespace {

[[noreturn]] void busy_loop(int niceness) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  ::setpriority(PRIO_PROCESS, 0, niceness);
  for (volatile bool on = true; on;) {
  }
  ::_exit(0);
}

}  // namespace

BusyLoops::BusyLoops(unsigned count, int niceness) {
  for (unsigned i = 0; i < count; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) {
      throw ConfigError("--busy", "a process for each processor", std::strerror(errno),
                        "stop other programs of this user");
    }
    if (pid == 0) busy_loop(niceness);
    pids_.push_back(pid);
  }
}

BusyLoops::~BusyLoops() {
  for (const pid_t pid : pids_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

}  // namespace tessera::bench
