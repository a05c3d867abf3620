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
  /// Variables set beside those of this process.
  std::vector<std::pair<std::string, std::string>> environment = {};
  /// Whether its output is a terminal (of its own), where progress bars are drawn.
  bool terminal = false;
};

/// A program that works when told to: it reads a number from a line of its input and answers with a
/// line that is a JSON object. Between lines it sleeps. What else it writes is passed over.
class LineProcess {
 public:
  /// Starts it. Throws ConfigError if that fails.
  explicit LineProcess(const std::vector<std::string>& command,
                       const LineProcessOptions& options = {});
  /// Ends its input and waits for it.
  ~LineProcess();
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;

  void tell(int64_t number);
  /// Ends its input, without waiting for it.
  void end_input();
  /// Its next answer. Throws ConfigError if it has ended.
  Json answer();
  /// tell() and answer().
  Json run(int64_t number);

 private:
  std::string name_;
  pid_t pid_ = 0;
  FILE* in_ = nullptr;
  FILE* out_ = nullptr;
};

}  // namespace tessera::bench
