#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tessera::app {

/// Runs an application's main function and returns its exit code, or answers `--version` as the
/// first argument. When the process ends, what main_function registered with std::atexit() is
/// called, but static objects of libraries are not destroyed, unless LD_PRELOAD or
/// CUDA_INJECTION64_PATH names a tool. An exception prints one line on
/// standard error, such as `mnist: error: <text>`, and gives exit code 1, or exit_of_lost_run if
/// another process is at fault. Interrupted prints a line without "error" and gives 128 + its
/// signal. An exception that nothing can catch, such as one that leaves a thread, also prints one
/// line, and the process exits with code 1 after it has told the others.
int run_app(int argc, char** argv, const std::function<int(int, char**)>& main_function);

/// Returns what a program answers to `--version`: "mnist (Tessera) 0.1.0".
std::string version_line(const std::string& program);

/// Throws ConfigError for a command that an application does not have, naming the nearest of those
/// that it has.
[[noreturn]] void fail_at_command(const std::string& app, const std::string& command,
                                  const std::vector<std::string>& commands);

}  // namespace tessera::app
