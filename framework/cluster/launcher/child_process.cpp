#include <tessera/framework/cluster/launcher/child_process.hpp>

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/helper_program.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>

namespace tessera::detail {
namespace {

struct Pipe {
  FileDescriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw ConfigError("launch", "a pipe can be opened", strerror(errno),
                      "start fewer processes or raise ulimit -n");
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

/// Data for the new process, prepared before fork(), as the child must not allocate.
struct ChildArguments {
  std::vector<char*> command;
  std::vector<char*> environment;
  int out, err, failure;
  pid_t parent;
};

/// Runs between fork() and exec(): async-signal-safe calls only.
[[noreturn]] void exec_child(const ChildArguments& child) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != child.parent) _exit(1);
  for (const int number : {SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0 && dup2(nothing, 0) >= 0 && dup2(child.out, 1) >= 0 && dup2(child.err, 2) >= 0) {
    execve(child.command[0], child.command.data(), child.environment.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t told = write(child.failure, &error, sizeof error);
  _exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command,
                           const std::map<std::string, std::string>& environment) {
  Pipe out = make_pipe(), err = make_pipe(), failure = make_pipe();
  std::vector<std::string> arguments = command, variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  const ChildArguments child{exec_pointers(arguments), exec_pointers(variables), out.write.get(),
                             err.write.get(),          failure.write.get(),      getpid()};
  pid_ = fork();
  if (pid_ == 0) exec_child(child);
  if (pid_ < 0) {
    throw ConfigError("launch", "a process can be started", strerror(errno),
                      "start fewer processes");
  }
  setpgid(pid_, pid_);
  failure.write.reset();
  int error = 0;
  ssize_t size;
  while ((size = read(failure.read.get(), &error, sizeof error)) < 0 && errno == EINTR) continue;
  if (size > 0) {
    waitpid(pid_, nullptr, 0);
    throw ConfigError("launch", "the program can be run",
                      in_quotes(command[0]) + ": " + strerror(error), "name another program");
  }
  for (FileDescriptor* end : {&out.read, &err.read}) {
    fcntl(end->get(), F_SETFL, O_NONBLOCK);
    streams_.push_back({end == &out.read ? 1 : 2, std::move(*end), {}});
  }
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      ended_(other.ended_),
      status_(other.status_),
      end_(other.end_),
      streams_(std::move(other.streams_)) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || ended_) return;
  kill(-pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void ChildProcess::signal(int number) const {
  if (!ended_) kill(-pid_, number);
}

bool ChildProcess::reap() {
  if (ended_) return false;
  siginfo_t info = {};
  // WNOWAIT: until the process is reaped, its pid cannot be reused.
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return false;
  }
  kill(-pid_, SIGKILL);
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) continue;
  end_ = std::chrono::steady_clock::now();
  ended_ = true;
  return true;
}

std::string describe_status(int status) {
  if (!WIFSIGNALED(status)) return str("exit code ", WEXITSTATUS(status));
  return str("killed by signal ", WTERMSIG(status), " (", signal_name(WTERMSIG(status)), ")");
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace tessera::detail
