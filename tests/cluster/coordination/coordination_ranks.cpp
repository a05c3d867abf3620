#include "tests/cluster/coordination/coordination_ranks.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <utility>

#include <tessera/framework/base/error.hpp>

#include "tests/support/files.hpp"

namespace tessera::test {

using namespace detail;

namespace {

sockaddr_in loopback(int port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return name;
}

}  // namespace

FileDescriptor connect_and_send(int port, const std::string& bytes) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in name = loopback(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    socket.reset();
  } else {
    ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  return socket;
}

std::string read_all(const FileDescriptor& connection) {
  std::string all;
  std::array<char, 4096> bytes{};
  for (ssize_t count = 1; count > 0;) {
    count = ::recv(connection.get(), bytes.data(), bytes.size(), 0);
    if (count > 0) all.append(bytes.data(), static_cast<size_t>(count));
  }
  return all;
}

CoordinationOptions rank_options(int rank, int size, int port) {
  static const TempFolder reports;
  ::setenv("TESSERA_REPORT_DIR", reports.path().c_str(), 0);
  CoordinationOptions options;
  options.rank = rank;
  options.size = size;
  options.port = port;
  options.connect_timeout = std::chrono::seconds(60);
  options.timeout = std::chrono::seconds(60);
  options.say = [](const std::string&) {};
  return options;
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> on_threads(int size, const std::function<void(int rank)>& action) {
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back(
        [&, rank] { errors[static_cast<size_t>(rank)] = error_of([&] { action(rank); }); });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

Ranks join_all(int size, std::chrono::milliseconds timeout) {
  Ranks ranks(static_cast<size_t>(size));
  const CoordinationOptions common = rank_options(0, size, free_port());
  const std::vector<std::string> errors = on_threads(size, [&](int rank) {
    CoordinationOptions options = common;
    options.rank = rank;
    options.timeout = timeout;
    ranks[static_cast<size_t>(rank)] = Coordination::join(options);
  });
  for (const std::string& error : errors) {
    if (!error.empty()) throw CommError(error);
  }
  return ranks;
}

void leave_all(Ranks& ranks) {
  on_threads(static_cast<int>(ranks.size()),
             [&](int rank) { ranks[static_cast<size_t>(rank)].reset(); });
}

RankProcess::RankProcess(const std::function<void(const Tell& tell)>& action) {
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) throw CommError("no pipe");
  lines_ = FileDescriptor(ends[0]);
  pid_ = ::fork();
  if (pid_ != 0) {
    ::close(ends[1]);
    return;
  }
  const auto tell = [&](const std::string& text) {
    const std::string bytes = text + "\n";
    [[maybe_unused]] const ssize_t count = ::write(ends[1], bytes.data(), bytes.size());
  };
  const std::string error = error_of([&] { action(tell); });
  if (!error.empty()) tell(error);
  ::_exit(error.empty() ? 0 : 1);
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), lines_(std::move(other.lines_)) {}

RankProcess::~RankProcess() {
  if (pid_ <= 0) return;
  signal(SIGKILL);
  wait();
}

void RankProcess::signal(int number) const { ::kill(pid_, number); }

std::string RankProcess::line() {
  std::string text;
  char c = '\0';
  while (true) {
    const ssize_t count = ::read(lines_.get(), &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || c == '\n') return text;
    text += c;
  }
}

int RankProcess::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace tessera::test
