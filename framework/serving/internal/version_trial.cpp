#include <tessera/framework/serving/internal/version_trial.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <thread>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/versioned_directory.hpp>

namespace tessera::detail {
namespace {

namespace fs = std::filesystem;
using TrialClock = std::chrono::steady_clock;

constexpr const char* trial_program = "tessera-check-export";
constexpr std::chrono::milliseconds trial_poll{10};
// Exit codes of the program.
constexpr int version_is_bad = 1;

[[noreturn]] void refuse_version(const VersionTrial& trial, const std::string& received) {
  throw FileError(version_path(trial.folder, trial.version),
                  "a process of its own can load the version and compute its sample", received,
                  "export a smaller model, or give the server more memory");
}

/// The process, ended and waited for at the latest with this.
class TrialProcess {
 public:
  /// Throws StateError if the system starts none.
  TrialProcess(const VersionTrial& trial, int output) {
    std::vector<std::string> words{trial.program, trial.folder, std::to_string(trial.version),
                                   std::to_string(trial.max_activation_bytes)};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    // Connections of clients, above all, which would stay open with it.
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    const int error = posix_spawn(&process_, arguments[0], &actions, nullptr, arguments.data(),
                                  environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0) return;
    process_ = -1;
    throw StateError(trial.program, "the program can be started", strerror(error),
                     "install it beside the server's program, or switch try_apart off");
  }
  ~TrialProcess() {
    if (process_ < 0) return;
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  TrialProcess(const TrialProcess&) = delete;
  TrialProcess& operator=(const TrialProcess&) = delete;

  /// Whether it ended, and how.
  bool ended(int& status) {
    const pid_t found = ::waitpid(process_, &status, WNOHANG);
    if (found == 0 || (found < 0 && errno == EINTR)) return false;
    process_ = -1;
    return true;
  }

 private:
  pid_t process_ = -1;
};

/// Its one line, which fits into the pipe.
std::string line_from(int pipe) {
  std::array<char, 4096> text;
  const ssize_t size = ::read(pipe, text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : "";
}

}  // namespace

std::string find_trial_program() {
  std::error_code error;
  std::vector<fs::path> folders{fs::read_symlink("/proc/self/exe", error).parent_path()};
  Dl_info library{};
  if (::dladdr(reinterpret_cast<void*>(&find_trial_program), &library) != 0) {
    const fs::path lib = fs::absolute(library.dli_fname, error).parent_path();
    folders.push_back(lib.parent_path() / "bin");
    // As in /usr/lib/x86_64-linux-gnu.
    folders.push_back(lib.parent_path().parent_path() / "bin");
  }
  for (const fs::path& folder : folders) {
    const std::string path = folder / trial_program;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

void try_version_apart(const VersionTrial& trial, const std::function<bool()>& stopped) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw StateError(trial.program, "there is a pipe to the program", strerror(errno),
                     "allow more open files");
  }
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  TrialProcess process(trial, write_end.get());
  write_end.reset();
  const auto deadline = TrialClock::now() + trial.timeout;
  int status = 0;
  while (!process.ended(status)) {
    if (stopped()) return;
    if (TrialClock::now() >= deadline) {
      refuse_version(trial, str("no end of it within ", trial.timeout.count(), " ms"));
    }
    std::this_thread::sleep_for(trial_poll);
  }
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    refuse_version(trial, str("its end by signal ", signal,
                              signal == SIGKILL ? ", as when memory runs out" : ""));
  }
  // Of a layer that only this program knows it cannot tell.
  if (WEXITSTATUS(status) != version_is_bad) return;
  const std::string text = line_from(read_end.get());
  const std::string line = one_line(text.substr(0, text.find('\n')), 1000);
  if (line.starts_with("[")) throw FileError(line);
  refuse_version(trial, line);
}

}  // namespace tessera::detail
