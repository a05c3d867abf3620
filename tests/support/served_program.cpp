#include "tests/support/served_program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "tests/support/files.hpp"
#include "tests/support/program.hpp"

namespace tessera::test {

ServedProgram::ServedProgram(const std::string& app, const std::vector<std::string>& words,
                             const std::string& log) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("there is no pipe");
  const std::string program = app_path(app).string();
  std::vector<std::string> all = {app};
  if (app != "serve") all.emplace_back("serve");
  all.insert(all.end(), words.begin(), words.end());
  all.insert(all.end(), {"--port", "0", "--access-log"});
  std::vector<char*> arguments;
  arguments.reserve(all.size() + 1);
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    ::dup2(ends[1], 1);
    ::dup2(::open(log.c_str(), O_WRONLY | O_CREAT, 0600), 2);
    ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  FILE* out = ::fdopen(ends[0], "r");
  char line[500] = "";
  if (std::fgets(line, sizeof(line), out)) first_line_ = line;
  std::fclose(out);
  const size_t at = first_line_.find("127.0.0.1:");
  if (at != std::string::npos) port_ = std::atoi(first_line_.c_str() + at + 10);
}

ServedProgram::~ServedProgram() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ServedProgram::signal(int number) const { ::kill(pid_, number); }

int ServedProgram::wait() {
  int status = 0;
  ::waitpid(std::exchange(pid_, 0), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace tessera::test
