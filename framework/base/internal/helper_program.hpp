#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace tessera::detail {

/// Path of a program that comes with the library: it lies beside this program, or in the folder
/// `bin` beside that of the library. Empty if it is nowhere.
std::string find_program(const std::string& name);

/// What a program gets of this process's descriptors.
struct HelperDescriptors {
  int input = -1;   ///< its standard input; -1: nothing comes in
  int output = -1;  ///< its standard output
  int file = -1;    ///< its descriptor 3; -1: it has none
};

/// A program that works for this process: ended and waited for at the latest with this. What it
/// says of errors goes nowhere.
class HelperProgram {
 public:
  /// `words` begin with the program's path. Throws StateError with `fix` if the system starts none.
  HelperProgram(std::vector<std::string> words, const HelperDescriptors& descriptors,
                const std::string& fix);
  ~HelperProgram();
  HelperProgram(const HelperProgram&) = delete;
  HelperProgram& operator=(const HelperProgram&) = delete;

  /// How it ended, as waitpid(2) has it; nothing while it runs, and after that was told.
  std::optional<int> poll();
  /// Ends it if it runs, and waits.
  void end();

 private:
  pid_t process_ = -1;
};

}  // namespace tessera::detail
