#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tessera::test {

/// How a program ended, and its output.
struct ProgramRun {
  int exit_code = 0;  ///< 128 + the signal's number if a signal ended it
  std::string out;
  std::string err;
};

/// Runs a program to its end, in this process's environment with the variables of `environment`
/// set, and without downloads unless one of them says otherwise. Throws std::runtime_error if it
/// cannot be started.
ProgramRun run_program(const std::filesystem::path& program,
                       const std::vector<std::string>& arguments,
                       const std::vector<std::pair<std::string, std::string>>& environment = {});

/// Starts a program whose output goes to two files, with the environment as above; returns its
/// process id.
pid_t start_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                    const std::vector<std::pair<std::string, std::string>>& environment,
                    const std::filesystem::path& out, const std::filesystem::path& err);

/// Waits for it; returns its exit code, or 128 + the signal's number.
int wait_program(pid_t pid);

}  // namespace tessera::test
