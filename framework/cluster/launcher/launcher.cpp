#include <tessera/framework/cluster/launcher/launcher.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/launcher/launch_attempt.hpp>
#include <tessera/framework/cluster/launcher/launch_task.hpp>

namespace tessera::detail {
namespace {

namespace fs = std::filesystem;

constexpr int longest_flush_ms = 1000;

/// While alive, the launcher's signals are blocked and readable from a signalfd, and SIGPIPE is
/// ignored.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&set, number);
    // With SIGCHLD ignored, waitpid() could not return exit statuses.
    child_before_ = ::signal(SIGCHLD, SIG_DFL);
    pipe_before_ = ::signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, &before_);
    read_ = FileDescriptor(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  }
  ~BlockedSignals() {
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    ::signal(SIGCHLD, child_before_);
    ::signal(SIGPIPE, pipe_before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  int descriptor() const { return read_.get(); }

 private:
  sigset_t before_;
  sighandler_t child_before_, pipe_before_;
  FileDescriptor read_;
};

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> programs_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (is_program(entry.path())) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Writes the remaining output. Gives up on a signal or, if the run was `stopped` by one, when
/// nobody reads for a while.
void flush(OutputMultiplexer& output, int signals, bool stopped) {
  while (!output.empty()) {
    pollfd list[] = {{signals, POLLIN, 0}, {output.descriptor(), POLLOUT, 0}};
    if (poll(list, 2, stopped ? longest_flush_ms : -1) == 0) return;
    if (list[1].revents != 0) output.write();
    signalfd_siginfo info;
    if (list[1].revents == 0 && read(signals, &info, sizeof info) == sizeof info &&
        info.ssi_signo != SIGCHLD) {
      return;
    }
  }
}

struct Outcome {
  int code = 0;
  bool stopped = false;
};

Outcome run_attempts(const std::vector<std::string>& command, const LaunchOptions& options,
                     int signals, OutputMultiplexer& output) {
  for (int restart = 0;; ++restart) {
    LaunchAttempt attempt(command, options, launch_tasks(options, restart), signals, output);
    attempt.watch();
    if (attempt.stopped_by() != 0) return {128 + attempt.stopped_by(), true};
    if (attempt.first_status() == 0) return {};
    output.add(STDERR_FILENO, "launch: " + attempt.summary());
    // Members are restarted one by one while their run lasts.
    if (restart == options.max_restarts || options.min_processes > 0) {
      return {exit_code_of(attempt.first_status())};
    }
    output.add(STDERR_FILENO, str("launch: restart ", restart + 1, " of ", options.max_restarts));
  }
}

}  // namespace

std::string find_program(const std::string& name, const std::string& folder) {
  if (name.find('/') != name.npos) {
    if (is_program(name)) return name;
    throw ConfigError("launch", "the program must be an executable file", in_quotes(name),
                      "check the path");
  }
  const std::string beside = (fs::path(folder) / name).string();
  if (!name.empty() && is_program(beside)) return beside;
  const char* variable = std::getenv("PATH");
  const std::string path = variable == nullptr ? "" : variable;
  for (size_t from = 0; !name.empty() && from <= path.size();) {
    const size_t colon = std::min(path.find(':', from), path.size());
    const fs::path candidate = fs::path(path.substr(from, colon - from)) / name;
    if (colon > from && is_program(candidate)) return candidate.string();
    from = colon + 1;
  }
  throw ConfigError("launch", "the program is a path, an application or a program in PATH",
                    in_quotes(name), suggestion(name, programs_in(folder)));
}

int launch(const std::vector<std::string>& command, const LaunchOptions& options) {
  const BlockedSignals signals;
  OutputMultiplexer output;
  const Outcome outcome = run_attempts(command, options, signals.descriptor(), output);
  flush(output, signals.descriptor(), outcome.stopped);
  return outcome.code;
}

}  // namespace tessera::detail
