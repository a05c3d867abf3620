#include "apps/common/run_app.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/out_of_memory.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/version.hpp>
#include <tessera/framework/cluster/coordination/reported_failure.hpp>
#include <tessera/framework/cluster/internal/collective_error.hpp>
#include <tessera/framework/cluster/launcher/launcher.hpp>

namespace tessera::app {

using namespace detail;

namespace {

constexpr size_t max_error_text = 4000;
constexpr size_t spare_bytes = size_t{1} << 16;
/// Seconds after which a process ends even if its report to the others is stuck.
constexpr unsigned report_seconds = 3;
constexpr const char* out_of_memory = "out of memory. To fix: use a smaller batch or model.";

int report(const std::string& program, const std::string& text, int code = 1) {
  std::cout << std::flush;
  report_failure(text);
  std::cerr << program << ": error: " << one_line(text, max_error_text) << std::endl;
  return code;
}

/// Memory for end_at_once(), which may run when there is none left.
struct LastWords {
  char begin[128] = "";   ///< "mnist: error: "
  char* spare = nullptr;  ///< released for what the report to the others allocates
};

// Not destroyed, as static destructors may fail too.
constinit LastWords last_words;

/// Copies the first line of a text to the end of a line of limited size.
void append_line(std::span<char> line, size_t& size, const char* text) {
  for (; *text != '\0' && *text != '\n' && size + 1 < line.size(); ++text) {
    line[size++] = static_cast<unsigned char>(*text) < ' ' ? ' ' : *text;
  }
}

/// Appends the text of the exception that is being handled.
void append_reason(std::span<char> line, size_t& size) noexcept {
  if (!std::current_exception()) return append_line(line, size, "std::terminate() was called");
  try {
    throw;
  } catch (const std::exception& error) {
    append_line(line, size, is_out_of_memory(error) ? out_of_memory : error.what());
  } catch (...) {
    append_line(line, size, "an exception of unknown type");
  }
}

/// Ends the process for an exception that nothing can catch, such as one that leaves a thread or,
/// without memory, a destructor: writes the line, then reports to the other processes.
[[noreturn]] void end_at_once() {
  static std::atomic_flag ending;
  // Another thread ends the process; this one may have failed since it does.
  while (ending.test_and_set()) ::pause();
  std::signal(SIGALRM, [](int) { ::_exit(EXIT_FAILURE); });
  ::alarm(report_seconds);
  std::array<char, max_error_text> line;
  size_t size = 0;
  append_line(line, size, last_words.begin);
  const size_t begin = size;
  append_reason(line, size);
  line[size] = '\n';
  write_all(STDERR_FILENO, std::as_bytes(std::span(line).first(size + 1)));
  delete[] std::exchange(last_words.spare, nullptr);
  try {
    report_failure(std::string(line.data() + begin, size - begin));
    std::cout << std::flush;
  } catch (...) {
    // The others notice the lost connection.
  }
  ::_exit(EXIT_FAILURE);
}

/// Takes the program's name as it is in `path`, without its folder.
void set_last_words(const char* path) {
  const char* slash = std::strrchr(path, '/');
  std::snprintf(last_words.begin, sizeof(LastWords::begin),
                "%s: error: ", slash ? slash + 1 : path);
  std::set_terminate(end_at_once);
  last_words.spare = new char[spare_bytes];
}

/// Ends the process before the libraries' static objects are destroyed: libtorch takes its
/// operators out of its tables one by one, a third of the time of a program that only prints its
/// options. What was made and registered later, in main(), is destroyed and called first, as usual.
/// Tools that were loaded into the process, such as profilers, write their results at the very end.
void end_before_static_destructors() {
  for (const char* const tool : {"LD_PRELOAD", "CUDA_INJECTION64_PATH"}) {
    if (std::getenv(tool)) return;
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  ::on_exit(
      [](int status, void*) {
        std::cout.flush();
        std::fflush(nullptr);
        ::_exit(status);
      },
      nullptr);
#endif
}

int report(const std::string& program, const Interrupted& interrupted) {
  std::cout << std::flush;
  std::cerr << program << ": " << one_line(interrupted.what(), max_error_text) << std::endl;
  return 128 + interrupted.signal();
}

}  // namespace

int run_app(int argc, char** argv, const std::function<int(int, char**)>& main_function) {
  const char* path = argc > 0 ? argv[0] : "";
  set_last_words(path);
  end_before_static_destructors();
  const std::string program = std::filesystem::path(path).filename().string();
  if (argc > 1 && std::strcmp(argv[1], "--version") == 0) {
    std::cout << version_line(program) << std::endl;
    return 0;
  }
  try {
    return main_function(argc, argv);
  } catch (const Interrupted& interrupted) {
    return report(program, interrupted);
  } catch (const CommError& error) {
    return report(program, error.what(), exit_of_lost_run);
  } catch (const RankFailures& error) {
    return report(program, error.what(), exit_of_lost_run);
  } catch (const Error& error) {
    return report(program, error.what());
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) return report(program, out_of_memory);
    // Keep the first line: libraries' texts may include a stack trace.
    const std::string text = error.what();
    return report(program, text.substr(0, text.find('\n')));
  } catch (...) {
    return report(program, "an exception of unknown type");
  }
}

std::string version_line(const std::string& program) { return program + " (Tessera) " + version(); }

void fail_at_command(const std::string& app, const std::string& command,
                     const std::vector<std::string>& commands) {
  const std::string all_but_last = join({commands.data(), commands.size() - 1}, ", ");
  const std::string meant = nearest(command, commands);
  throw ConfigError("command line", "the command is " + all_but_last + " or " + commands.back(),
                    in_quotes(command),
                    meant.empty() ? "see " + app + " --help" : "write " + meant);
}

}  // namespace tessera::app
