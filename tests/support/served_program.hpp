#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace tessera::test {

/// A program that serves on a free port of this machine; it is killed at the end.
class ServedProgram {
 public:
  /// Starts `APP serve WORDS... --port 0 --access-log`, for APP "serve" without a second "serve",
  /// and waits for the line with the address.
  ServedProgram(const std::string& app, const std::vector<std::string>& words,
                const std::string& log = "/dev/null");
  ~ServedProgram();
  ServedProgram(const ServedProgram&) = delete;
  ServedProgram& operator=(const ServedProgram&) = delete;

  /// Returns the port; 0 if it did not start.
  int port() const { return port_; }
  const std::string& first_line() const { return first_line_; }
  void signal(int number) const;
  /// Waits for the end; returns the exit code, 128 + the signal's number if a signal ended it.
  int wait();

 private:
  pid_t pid_ = 0;
  int port_ = 0;
  std::string first_line_;
};

}  // namespace tessera::test
