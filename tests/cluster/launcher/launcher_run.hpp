#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/launcher/launcher.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace tessera::test {

using namespace detail;

using namespace std::chrono_literals;

struct Run {
  int code = -1;  ///< exit status; 128 + the signal that ended the launcher itself
  std::string out;
  std::string err;
  std::chrono::duration<double> time{};
};

/// A launcher in a process of its own, with standard output and error in files.
class Launcher {
 public:
  Launcher(const std::string& script, const LaunchOptions& options, int out = -1)
      : start_(std::chrono::steady_clock::now()) {
    pid_ = fork();
    if (pid_ != 0) return;
    redirect(1, "out");
    if (out >= 0) dup2(out, 1);
    redirect(2, "err");
    unsetenv("OMP_NUM_THREADS");
    setenv("TF_CONFIG", "{\"another\": 1}", 1);
    int code = 99;
    try {
      code = launch({"/bin/sh", "-c", script}, options);
    } catch (const Error& error) {
      [[maybe_unused]] auto written = write(2, error.what(), std::string(error.what()).size());
    }
    _exit(code);
  }
  ~Launcher() {
    if (pid_ > 0) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  std::string out() const { return read_file(folder_ / "out"); }

  /// Waits until the processes have written `count` lines.
  void wait_for_lines(int64_t count) const {
    for (int i = 0; i < 1000; ++i) {
      std::error_code ignored;
      if (std::filesystem::exists(folder_ / "out", ignored)) {
        const std::string text = out();
        if (std::count(text.begin(), text.end(), '\n') >= count) return;
      }
      std::this_thread::sleep_for(10ms);
    }
    FAIL("the processes write nothing");
  }

  Run finish() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    Run run;
    run.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    run.time = std::chrono::steady_clock::now() - start_;
    run.out = out();
    run.err = read_file(folder_ / "err");
    return run;
  }

 private:
  void redirect(int descriptor, const std::string& name) const {
    dup2(open((folder_ / name).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), descriptor);
  }

  std::chrono::steady_clock::time_point start_;
  TempFolder folder_;
  pid_t pid_;
};

inline Run run(const std::string& script, const LaunchOptions& options = {}) {
  return Launcher(script, options).finish();
}

/// Sorts the lines alphabetically.
inline std::string sorted(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

/// Removes times, which differ from run to run.
inline std::string without_times(std::string text) {
  for (size_t at = 0; (at = text.find(", after ", at)) != text.npos;) {
    text.erase(at, text.find(" s", at) + 2 - at);
  }
  return text;
}

/// Returns the launcher's own lines.
inline std::string own_lines(const std::string& text) {
  std::istringstream in(text);
  std::string own;
  for (std::string line; std::getline(in, line);) own += line[0] == '[' ? "" : line + "\n";
  return own;
}

inline bool is_alive(pid_t pid) { return kill(pid, 0) == 0; }

inline bool dies(pid_t pid) {
  for (int i = 0; i < 300 && is_alive(pid); ++i) std::this_thread::sleep_for(10ms);
  return !is_alive(pid);
}

}  // namespace tessera::test
