#include "tests/support/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include <tessera/framework/base/internal/helper_program.hpp>

#include "tests/support/files.hpp"

namespace tessera::test {

using namespace detail;

namespace {

std::vector<std::string> with_variables(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(variables.begin(), variables.end(),
                                      [&](const auto& variable) { return variable.first == name; });
    if (!replaced) all.push_back(text);
  }
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  // Added last as a default: of two values a program sees the first.
  all.emplace_back("TESSERA_OFFLINE=1");
  return all;
}

/// Redirects a program's input and output.
class Streams {
 public:
  Streams(const std::filesystem::path& out, const std::filesystem::path& err) {
    posix_spawn_file_actions_init(&actions_);
    const int write = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, 1, out.c_str(), write, 0600);
    posix_spawn_file_actions_addopen(&actions_, 2, err.c_str(), write, 0600);
  }
  ~Streams() { posix_spawn_file_actions_destroy(&actions_); }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

pid_t start_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                    const std::vector<std::pair<std::string, std::string>>& environment,
                    const std::filesystem::path& out, const std::filesystem::path& err) {
  const Streams streams(out, err);
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = with_variables(environment);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, program.c_str(), streams.get(), nullptr,
                                 exec_pointers(words).data(), exec_pointers(variables).data());
  if (failed != 0) throw std::runtime_error("cannot start " + program.string());
  return pid;
}

int wait_program(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ProgramRun run_program(const std::filesystem::path& program,
                       const std::vector<std::string>& arguments,
                       const std::vector<std::pair<std::string, std::string>>& environment) {
  const TempFolder folder;
  const pid_t pid = start_program(program, arguments, environment, folder / "out", folder / "err");
  ProgramRun run;
  run.exit_code = wait_program(pid);
  run.out = read_file(folder / "out");
  run.err = read_file(folder / "err");
  return run;
}

}  // namespace tessera::test
