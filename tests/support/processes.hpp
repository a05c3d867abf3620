#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/files.hpp"

namespace tessera::test {

/// The processes that this one started and that still run.
std::vector<pid_t> children_of(pid_t parent);

/// How one process of several ended and what it wrote.
struct RankEnd {
  int exit_code = 0;  ///< 128 + the signal's number if one ended it; -1: it had to be killed
  std::string out, err;
  std::chrono::milliseconds at{0};  ///< since all were started
};

/// Several processes of one program that find each other by RANK, WORLD_SIZE, MASTER_ADDR and
/// MASTER_PORT. Those that still run at the end are killed.
class Processes {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;
  /// Starts them. Throws std::runtime_error if it cannot.
  Processes(int count, const std::filesystem::path& program,
            const std::vector<std::string>& arguments, const Variables& environment = {});
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  void signal(int rank, int number) const;
  int port() const { return port_; }
  /// What they write goes there, and the report if they fail.
  const std::filesystem::path& folder() const { return folder_.path(); }
  /// Whether the text appears in what the rank writes within `patience`.
  bool writes(int rank, const std::string& text, std::chrono::milliseconds patience) const;
  /// Waits until the given ranks, or all, have ended; kills them after `patience`.
  const std::vector<RankEnd>& wait(std::chrono::milliseconds patience,
                                   const std::vector<int>& ranks = {});

 private:
  bool reap();
  std::filesystem::path file(int rank, const char* name) const;

  TempFolder folder_;
  int port_ = 0;
  std::chrono::steady_clock::time_point start_;
  std::vector<pid_t> pids_;  ///< 0: reaped
  std::vector<RankEnd> ends_;
};

}  // namespace tessera::test
