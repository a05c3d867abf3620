#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/files.hpp"

namespace tessera::test {

using namespace detail;

/// Returns the running child processes.
std::vector<pid_t> children_of(pid_t parent);

/// How one process of several ended, and its output.
struct RankEnd {
  int exit_code = 0;  ///< 128 + the signal's number if a signal ended it; -1: it had to be killed
  std::string out, err;
  std::chrono::milliseconds at{0};  ///< time since all were started
};

/// Child processes by number, and their output. Those that still run at the end are killed.
class ProcessGroup {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  void signal(int number, int signal) const;
  bool runs(int number);
  /// The folder of their output and, if they fail, of the report.
  const std::filesystem::path& folder() const { return folder_.path(); }
  /// Returns the process' output so far, from both streams.
  std::string text(int number) const;
  /// Whether the text appears in the process' output within `patience` and before it ends.
  bool writes(int number, const std::string& text, std::chrono::milliseconds patience);
  /// Waits until the given processes, or all, have ended; kills them after `patience`.
  const std::vector<RankEnd>& wait(std::chrono::milliseconds patience,
                                   const std::vector<int>& numbers = {});

 protected:
  explicit ProcessGroup(int count);
  ~ProcessGroup();
  /// Starts the process of this number, again if it has ended: then its earlier output is removed.
  /// Throws std::runtime_error on failure.
  void start(int number, const std::filesystem::path& program,
             const std::vector<std::string>& arguments, const Variables& environment);

 private:
  bool reap();
  std::filesystem::path file(int number, const char* name) const;

  TempFolder folder_;
  std::chrono::steady_clock::time_point start_;
  std::vector<pid_t> pids_;  ///< 0: reaped
  std::vector<RankEnd> ends_;
};

/// Returns the variables with those of the second list in place of equal names.
ProcessGroup::Variables replaced(ProcessGroup::Variables variables,
                                 const ProcessGroup::Variables& later);

/// Several processes of one program that find each other by RANK, WORLD_SIZE, MASTER_ADDR and
/// MASTER_PORT.
class Processes : public ProcessGroup {
 public:
  /// Starts them. Throws std::runtime_error on failure.
  Processes(int count, const std::filesystem::path& program,
            const std::vector<std::string>& arguments, const Variables& environment = {});

  int port() const { return port_; }

 private:
  int port_ = 0;
};

}  // namespace tessera::test
