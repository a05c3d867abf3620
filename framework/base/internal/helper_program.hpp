#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace tessera::detail {

/// Returns the path of a program that ships with the library: in the folder of this program, or in
/// `bin` next to the library's folder. Empty if it is not found.
std::string find_program(const std::string& name);

/// Descriptors of this process that a helper program inherits.
struct HelperDescriptors {
  int input = -1;   ///< its standard input (-1: /dev/null)
  int output = -1;  ///< its standard output
  int file = -1;    ///< its descriptor 3 (-1: none)
};

/// Returns the texts as exec(3) takes arguments and variables, with a null pointer at the end.
std::vector<char*> exec_pointers(std::vector<std::string>& texts);

/// Starts a program, found in PATH if its name has no '/', with its arguments. Its standard error
/// is discarded. Returns 0 or an error number.
int spawn_helper(std::vector<std::string> command, const HelperDescriptors& descriptors,
                 pid_t& process);

/// A child process that works for this one; killed and reaped by the destructor at the latest. Its
/// standard error is discarded.
class HelperProgram {
 public:
  /// `command`: the program's path and its arguments. Throws StateError with `fix` if the process
  /// cannot be started.
  HelperProgram(std::vector<std::string> command, const HelperDescriptors& descriptors,
                const std::string& fix);
  ~HelperProgram();
  HelperProgram(const HelperProgram&) = delete;
  HelperProgram& operator=(const HelperProgram&) = delete;

  /// Returns its waitpid(2) status once after it has ended; nullopt before and afterwards.
  std::optional<int> poll();
  /// Kills it if it runs, and reaps it.
  void end();

 private:
  pid_t process_ = -1;
};

}  // namespace tessera::detail
