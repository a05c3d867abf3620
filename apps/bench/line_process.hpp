#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/json.hpp>

namespace tessera::bench {

/// This program, as a command.
inline const std::string own_program = "/proc/self/exe";

struct LineProcessOptions {
  /// Environment variables added to those of this process.
  std::vector<std::pair<std::string, std::string>> environment = {};
  /// Whether its output is a terminal (of its own), where progress bars are drawn.
  bool terminal = false;
};

/// A program that works on request: it reads a number per line of its input and answers each with a
/// line that is a JSON object. Between requests it sleeps. Its other output is ignored.
class LineProcess {
 public:
  /// Starts it. Throws ConfigError if that fails.
  explicit LineProcess(const std::vector<std::string>& command,
                       const LineProcessOptions& options = {});
  /// Closes the program's input and waits for it to exit.
  ~LineProcess();
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;

  void tell(int64_t number);
  /// Closes the program's input without waiting for it to exit.
  void end_input();
  /// Returns the next answer. Throws ConfigError if the program has ended.
  Json answer();
  /// Sends a number and returns the answer.
  Json run(int64_t number);

 private:
  std::string name_;
  pid_t pid_ = 0;
  FILE* in_ = nullptr;
  FILE* out_ = nullptr;
};

}  // namespace tessera::bench
