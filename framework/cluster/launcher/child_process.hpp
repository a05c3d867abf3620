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

/// A stream of a child, from which it is read without waiting.
struct ChildStream {
  int target = 1;  ///< the descriptor of this process that its lines go to
  FileDescriptor pipe;
  LineCutter lines;
};

/// A process that this one started, at the head of a process group of its own; it dies when the
/// starting thread does.
class ChildProcess {
 public:
  /// Starts words[0] with nothing to read. Throws ConfigError if it cannot.
  ChildProcess(const std::vector<std::string>& words,
               const std::map<std::string, std::string>& environment);
  /// Kills what is left of the group.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  bool ended() const { return ended_; }
  /// How the process ended, as waitpid() tells it.
  int status() const { return status_; }
  std::chrono::steady_clock::time_point end() const { return end_; }
  bool failed() const { return ended_ && status_ != 0; }

  /// Sends a signal to the group while the process lives.
  void signal(int number) const;
  /// Whether the process has ended since; kills what it leaves in its group.
  bool reap();
  std::vector<ChildStream>& streams() { return streams_; }

 private:
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
  std::chrono::steady_clock::time_point end_ = {};
  std::vector<ChildStream> streams_;
};

/// "exit code 3" or "killed by signal 9 (SIGKILL)", of a status of waitpid().
std::string describe_status(int status);
/// The code with which a shell would report the status.
int exit_code_of(int status);

}  // namespace tessera::detail
