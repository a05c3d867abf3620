#pragma once

#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>

namespace tessera::test {

/// Changes the bytes that one direction of a connection carries. Called with bytes as they arrive;
/// returns those to pass on.
using WireEdit = std::function<std::string(std::string_view bytes)>;

/// An attacker between two processes: listens on a loopback port, and passes each connection on to
/// another loopback port through edits of its own.
class WireProxy {
 public:
  struct Edits {
    WireEdit up;    ///< from the process that connects
    WireEdit down;  ///< to the process that connects
  };

  /// `edits`: returns the edits of the next connection. They are called on the proxy's thread.
  WireProxy(int port, std::function<Edits()> edits);
  ~WireProxy();
  WireProxy(const WireProxy&) = delete;
  WireProxy& operator=(const WireProxy&) = delete;

  int port() const { return port_; }

 private:
  struct Link {
    detail::FileDescriptor client;
    detail::FileDescriptor server;
    Edits edits;
  };

  void run();
  void accept_one();

  int target_;
  int port_ = 0;
  std::function<Edits()> edits_;
  detail::FileDescriptor listener_;
  detail::Waker stop_;
  std::list<Link> links_;
  std::thread thread_;
};

}  // namespace tessera::test
