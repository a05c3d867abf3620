#include "apps/bench/line_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/helper_program.hpp>

namespace tessera::bench {

using namespace detail;

namespace {

/// File descriptors of the read end and the write end.
using Ends = std::array<int, 2>;

[[noreturn]] void fail() {
  throw ConfigError("bench", "pipes to other processes", "none", "look at the limits of this host");
}

Ends make_pipe() {
  Ends ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail();
  return ends;
}

/// Opens a pseudo-terminal in raw mode.
Ends make_terminal() {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) fail();
  char name[128];
  if (::ptsname_r(master, name, sizeof(name)) != 0) fail();
  const int slave = ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  termios settings{};
  if (slave < 0 || ::tcgetattr(slave, &settings) != 0) fail();
  ::cfmakeraw(&settings);
  if (::tcsetattr(slave, TCSANOW, &settings) != 0) fail();
  return {master, slave};
}

[[noreturn]] void become(std::vector<std::string> command, const LineProcessOptions& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  const std::vector<char*> words = exec_pointers(command);
  ::execvp(words[0], words.data());
  std::perror(words[0]);
  ::_exit(127);
}

}  // namespace

LineProcess::LineProcess(const std::vector<std::string>& command, const LineProcessOptions& options)
    : name_(command[0] == own_program ? "bench " + command[1] : command.back()) {
  std::signal(SIGPIPE, SIG_IGN);
  const Ends in = make_pipe();
  const Ends out = options.terminal ? make_terminal() : make_pipe();
  pid_ = ::fork();
  if (pid_ < 0) fail();
  if (pid_ == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    become(command, options);
  }
  ::close(in[0]);
  ::close(out[1]);
  in_ = ::fdopen(in[1], "w");
  out_ = ::fdopen(out[0], "r");
}

LineProcess::~LineProcess() {
  end_input();
  // Read to the end: closing a terminal early would end the program with SIGHUP.
  while (std::fgetc(out_) != EOF) continue;
  std::fclose(out_);
  ::waitpid(pid_, nullptr, 0);
}

void LineProcess::tell(int64_t number) {
  std::fprintf(in_, "%lld\n", static_cast<long long>(number));
  std::fflush(in_);
}

void LineProcess::end_input() {
  if (in_) std::fclose(in_);
  in_ = nullptr;
}

Json LineProcess::answer() {
  std::string line;
  for (int c = 0; (c = std::fgetc(out_)) != EOF;) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    if (line.starts_with('{')) return parse_json(line, name_);
    line.clear();
  }
  throw ConfigError("bench", "the processes work until they are told to end", name_ + " has ended",
                    "look at what it says");
}

Json LineProcess::run(int64_t number) {
  tell(number);
  return answer();
}

}  // namespace tessera::bench
