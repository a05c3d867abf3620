#include <tessera/framework/serving/internal/version_trial.hpp>

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/helper_program.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/versioned_directory.hpp>

namespace tessera::detail {
namespace {

using TrialClock = std::chrono::steady_clock;

constexpr const char* trial_program = "tessera-check-export";
constexpr std::chrono::milliseconds trial_poll{10};
// The program's exit code.
constexpr int version_is_bad = 1;

[[noreturn]] void refuse_version(const VersionTrial& trial, const std::string& received) {
  throw FileError(version_path(trial.folder, trial.version),
                  "a separate process can load the version and compute its sample", received,
                  "export a smaller model, or give the server more memory");
}

/// Reads the program's output: one line, which fits into the pipe's buffer.
std::string line_from(int pipe) {
  std::array<char, 4096> text;
  const ssize_t size = ::read(pipe, text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : "";
}

}  // namespace

std::string find_trial_program() { return find_program(trial_program); }

void try_version_in_process(const VersionTrial& trial, const std::function<bool()>& stopped) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw StateError(trial.program, "there is a pipe to the program", strerror(errno),
                     "allow more open files");
  }
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  HelperProgram process({trial.program, trial.folder, std::to_string(trial.version),
                         std::to_string(trial.max_activation_bytes)},
                        {.output = write_end.get()},
                        "install it beside the server's program, or switch isolate_trials off");
  write_end.reset();
  const auto deadline = TrialClock::now() + trial.timeout;
  std::optional<int> ended;
  while (!(ended = process.poll())) {
    if (stopped()) return;
    if (TrialClock::now() >= deadline) {
      refuse_version(trial, str("no result within ", trial.timeout.count(), " ms"));
    }
    std::this_thread::sleep_for(trial_poll);
  }
  const int status = *ended;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    refuse_version(trial, str("its termination by signal ", signal,
                              signal == SIGKILL ? ", as when memory runs out" : ""));
  }
  // Other codes are no verdict, such as that for a layer that only the server registers.
  if (WEXITSTATUS(status) != version_is_bad) return;
  const std::string text = line_from(read_end.get());
  const std::string line = one_line(text.substr(0, text.find('\n')), 1000);
  if (line.starts_with("[")) throw FileError(line);
  refuse_version(trial, line);
}

}  // namespace tessera::detail
