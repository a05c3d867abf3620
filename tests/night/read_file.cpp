// night_reader: reads and writes files of all formats for night.py, each in a process of its own,
// so that none can end the others. Requests are lines with tabs between their words, answers are
// lines of JSON:
//   formats                                      the list of formats
//   read FORMAT PATH [NTH ERROR PROGRAM]         {"outcome", "hash", "text", …}
//   write FORMAT PATH VARIANT [NTH ERROR PROGRAM]
// With failing_malloc or failing_calls preloaded, call number NTH of the work fails with ERROR (see
// nth_call.h): this program's, or those of the program that it starts.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/out_of_memory.hpp>
#include <tessera/framework/base/json.hpp>

#include "apps/common/run_app.hpp"
#include "tests/night/formats.hpp"

namespace tessera::test {

using namespace detail;

namespace {

namespace fs = std::filesystem;

/// More than the CPU time that the sandbox of tessera-hdf5 allows, on a busy machine.
constexpr int timeout_ms = 60000;
constexpr rlim_t memory_limit = rlim_t{12} << 30;

struct Request {
  bool writes = false;
  const Format* format = nullptr;
  std::string path;
  int64_t variant = 0;
  int64_t nth = 0;
  int error = 0;
  std::string program;  ///< empty: this one
};

/// Functions of the preloaded library; null without one.
struct FailingCalls {
  void (*arm)(long, int) = function<void (*)(long, int)>("night_arm");
  long (*disarm)() = function<long (*)()>("night_disarm");

  template <class Pointer>
  static Pointer function(const char* name) {
    return reinterpret_cast<Pointer>(::dlsym(RTLD_DEFAULT, name));
  }
};

Request parse(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  for (std::string word; std::getline(stream, word, '\t');) words.push_back(word);
  Request request;
  request.writes = !words.empty() && words[0] == "write";
  if (words.size() < 3) throw ConfigError("night_reader", "a request has three words", line, "");
  for (const Format& format : formats()) {
    if (format.name == words[1]) request.format = &format;
  }
  if (!request.format || (request.writes && !request.format->write)) {
    throw ConfigError("night_reader", "the format is known", words[1], "");
  }
  request.path = words[2];
  size_t next = 3;
  const auto take = [&] { return next < words.size() ? words[next++] : std::string("0"); };
  if (request.writes) request.variant = std::stoll(take());
  request.nth = std::stoll(take());
  request.error = std::stoi(take());
  if (next < words.size()) request.program = words[next];
  return request;
}

int64_t open_descriptors() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

void answer(int out, const Json& json) {
  const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  write_all(out, std::as_bytes(std::span(line)));
}

/// Arms the program that this one starts.
void arm_program(const Request& request) {
  const char* error = request.error == -1 ? "short" : "exit";
  ::setenv("NIGHT_PROGRAM", request.program.c_str(), 1);
  ::setenv("NIGHT_NTH", std::to_string(request.nth).c_str(), 1);
  ::setenv("NIGHT_ERROR", request.error > 0 ? std::to_string(request.error).c_str() : error, 1);
  ::unsetenv("NIGHT_START");
}

/// Does the work with the failing call armed. Returns the error's text, and in `outcome` its kind.
std::string attempt(const Request& request, const FailingCalls& failing, Content& content,
                    long& calls, std::string& outcome) {
  const bool here = request.program.empty() && failing.arm;
  const auto disarm = [&] {
    if (here) calls = failing.disarm();
  };
  if (here) failing.arm(request.nth, request.error);
  try {
    if (request.writes) {
      request.format->write(request.path, request.variant);
    } else {
      request.format->read(request.path, content);
    }
    disarm();
    outcome = "ok";
    return "";
  } catch (const Error& error) {
    disarm();
    const std::string text = error.what();
    outcome = text.find('\n') == std::string::npos ? "refused" : "foreign";
    return text;
  } catch (const std::exception& error) {
    disarm();
    outcome = is_out_of_memory(error) ? "memory" : "foreign";
    return std::string(error.what()).substr(0, 400);
  } catch (...) {
    disarm();
    outcome = "foreign";
    return "an exception of unknown type";
  }
}

/// Works in the child process, and writes the answer.
[[noreturn]] void work(const Request& request, const FailingCalls& failing, int out,
                       int standard_error) {
  ::setpgid(0, 0);
  const FileDescriptor null = open_descriptor("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(null.get(), STDOUT_FILENO);
  ::dup2(standard_error, STDERR_FILENO);
  const rlimit memory{memory_limit, memory_limit}, core{0, 0};
  ::setrlimit(RLIMIT_AS, &memory);
  ::setrlimit(RLIMIT_CORE, &core);
  if (!request.program.empty()) arm_program(request);
  const int64_t before = open_descriptors();
  Content content;
  long calls = 0;
  std::string outcome;
  const std::string text = attempt(request, failing, content, calls, outcome);
  answer(out, {{"outcome", outcome},
               {"hash", outcome == "ok" && !request.writes ? content.hash() : 0},
               {"text", text},
               {"calls", calls},
               {"leaked", open_descriptors() - before}});
  ::_exit(EXIT_SUCCESS);
}

/// Reads what the child writes until it ends or the time is over. Returns whether it ended.
bool read_until_end(int from, std::string& text) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  std::array<char, 4096> bytes;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd waiting{from, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) == 0) return false;
    const ssize_t count = ::read(from, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    text.append(bytes.data(), static_cast<size_t>(count));
  }
}

std::string text_of(int file) {
  std::string text(2000, '\0');
  const ssize_t count = ::pread(file, text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return text;
}

/// Runs a request in a process of its own.
Json run(const Request& request, const FailingCalls& failing) {
  std::array<int, 2> ends;
  const FileDescriptor standard_error(::memfd_create("stderr", MFD_CLOEXEC));
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw StateError("night_reader", "a pipe", "none", "");
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child < 0) throw StateError("night_reader", "a process can be started", "none", "");
  if (child == 0) work(request, failing, write_end.get(), standard_error.get());
  write_end.reset();
  std::string line;
  const bool ended = read_until_end(read_end.get(), line);
  if (!ended) ::kill(child, SIGKILL);
  ::kill(-child, SIGKILL);  // what it started
  int status = 0;
  rusage usage{};
  while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  Json json{{"hash", 0}, {"text", text_of(standard_error.get())}, {"calls", 0}, {"leaked", 0}};
  if (!ended) {
    json["outcome"] = "hang";
  } else if (WIFSIGNALED(status)) {
    json["outcome"] = str("signal ", WTERMSIG(status));
  } else if (line.empty()) {
    json["outcome"] = str("exit ", WEXITSTATUS(status));
  } else {
    json = Json::parse(line);
  }
  json["seconds"] = seconds.count();
  json["megabytes"] = usage.ru_maxrss / 1024;
  return json;
}

Json list_of_formats() {
  Json list = Json::array();
  for (const Format& format : formats()) {
    list.push_back({{"name", format.name},
                    {"file", format.file},
                    {"writes", static_cast<bool>(format.write)}});
  }
  return list;
}

int reader_main(int, char**) {
  at::set_num_threads(1);
  // libtorch reads about processors and a seed at its first use, which must not be calls that fail.
  at::rand({8}).mul(2);
  const FailingCalls failing;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      answer(STDOUT_FILENO, line == "formats" ? list_of_formats() : run(parse(line), failing));
    } catch (const std::exception& error) {
      answer(STDOUT_FILENO, {{"outcome", "usage"}, {"text", error.what()}});
    }
  }
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
  // Its handler of exceptions that nothing can catch is inherited by the processes that work.
  return tessera::app::run_app(argc, argv, tessera::test::reader_main);
}
