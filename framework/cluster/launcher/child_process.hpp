#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/cluster/launcher/output_multiplexer.hpp>

namespace tessera::detail {

/// Output stream of a child, read without blocking.
struct ChildStream {
  int target = 1;  ///< descriptor of this process to which the lines are written
  FileDescriptor pipe;
  LineSplitter lines;
};

/// A child process that leads its own process group; it is killed when the thread that started it
/// ends.
class ChildProcess {
 public:
  /// Starts words[0] with an empty standard input. Throws ConfigError if it cannot be started.
  ChildProcess(const std::vector<std::string>& command,
               const std::map<std::string, std::string>& environment);
  /// Kills the group if the process still runs.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  pid_t pid() const { return pid_; }
  bool ended() const { return ended_; }
  /// Returns the status of waitpid().
  int status() const { return status_; }
  std::chrono::steady_clock::time_point end() const { return end_; }
  bool failed() const { return ended_ && status_ != 0; }

  /// Sends a signal to the group while the process runs.
  void signal(int number) const;
  /// Returns whether the process has newly ended; if so, kills the rest of its group.
  bool reap();
  std::vector<ChildStream>& streams() { return streams_; }

 private:
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
  std::chrono::steady_clock::time_point end_ = {};
  std::vector<ChildStream> streams_;
};

/// Formats a waitpid() status: "exit code 3" or "killed by signal 9 (SIGKILL)".
std::string describe_status(int status);
/// Returns the exit code that a shell would report for a waitpid() status.
int exit_code_of(int status);

}  // namespace tessera::detail
