#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <list>

#include <tessera/framework/cluster/coordination/coordination_socket.hpp>

#include "tests/support/catch.hpp"

namespace connect_test {

using namespace tessera::detail;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

/// A loopback address that drops connections: its listener has no room for more, and accepts none.
class SilentAddress {
 public:
  SilentAddress() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    auto& name = reinterpret_cast<sockaddr_in&>(address_.name);
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address_.size = sizeof name;
    ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address_.name), address_.size);
    ::listen(listener_.get(), 0);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address_.name), &address_.size);
    for (int i = 0; i < 50 && !silent_; ++i) connect_once();
  }
  /// Whether this system drops connections at all.
  bool silent() const { return silent_; }
  const SocketAddress& address() const { return address_; }

 private:
  void connect_once() {
    FileDescriptor& socket =
        connections_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address_.name), address_.size);
    pollfd entry{socket.get(), POLLOUT, 0};
    silent_ = ::poll(&entry, 1, 50) == 0;
  }

  FileDescriptor listener_;
  SocketAddress address_;
  std::list<FileDescriptor> connections_;
  bool silent_ = false;
};

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("a host's addresses share one deadline, and a silent one leaves the next its part") {
  const SilentAddress silent;
  if (!silent.silent()) {
    WARN("this system answers connections that nobody accepts");
    return;
  }
  std::string error;
  const auto start = steady_clock::now();
  const std::vector<SocketAddress> none(4, silent.address());
  CHECK_FALSE(connect_to_any(none, start + 400ms, error).valid());
  CHECK(error == "Connection timed out");
  CHECK(seconds_since(start) >= 0.4);
  CHECK(seconds_since(start) < 1.5);
  int port = 0;
  const FileDescriptor listener = listen_at("127.0.0.1", port, error);
  SocketAddress answers = silent.address();
  reinterpret_cast<sockaddr_in&>(answers.name).sin_port = htons(static_cast<uint16_t>(port));
  const std::vector<SocketAddress> both = {silent.address(), answers};
  CHECK(connect_to_any(both, steady_clock::now() + 400ms, error).valid());
}

}  // namespace connect_test
