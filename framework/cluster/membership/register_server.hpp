#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>
#include <tessera/framework/cluster/coordination/peer_handshake.hpp>
#include <tessera/framework/cluster/membership/member_register.hpp>
#include <tessera/framework/cluster/membership/register_messages.hpp>

namespace tessera::detail {

/// How a process holds the register of members of one host.
struct RegisterOptions {
  MembershipRules rules = {};
  std::string job = {};
  JobAccess access = {};
  std::string address = "127.0.0.1";
  /// receives warnings about refused processes
  std::function<void(const std::string& line)> say = {};
};

/// The register of members over TCP. Has no thread: its owner polls its descriptors among others
/// and calls serve().
class RegisterServer {
 public:
  /// Listens on a free port of the address. Throws CommError.
  explicit RegisterServer(const RegisterOptions& options);

  /// Returns "host:port", for TESSERA_MEMBERS.
  std::string where() const { return address_text(options_.address, port_); }
  const Membership& membership() const { return register_.membership(); }

  /// Adds the descriptors to wait for.
  void add_to(std::vector<pollfd>& entries) const;
  /// Returns when to call serve() at the latest.
  std::chrono::steady_clock::time_point wake_time() const;
  /// Does whatever can be done without waiting.
  void serve();

  /// Removes the processes of a process id of this host, which has ended.
  void lose_process(pid_t pid, const std::string& reason);
  /// Ends the run, as no more processes will come.
  void fail(const std::string& reason);

 private:
  using Time = std::chrono::steady_clock::time_point;

  struct Connection {
    FrameSocket socket;
    PeerHandshake handshake;
    Time deadline = {};     ///< by when it must have joined or, if it is ignored, be closed
    bool admitted = false;  ///< whether it has proved the secret
    std::string id = {};    ///< the member's; empty before it has joined
    bool ignored = false;   ///< whether its input is dropped
    bool closed = false;
    uint64_t told = 0;  ///< revision that was sent
    pid_t pid = 0;
  };

  void accept_all();
  /// Reads and handles what has arrived. `gone`: why the process is lost if the connection closed.
  void receive_from(Connection& connection, const std::string& gone);
  void handle(Connection& connection, const Frame& frame);
  void greet(Connection& connection, const Frame& frame);
  void admit(Connection& connection, const Member& member);
  void send(Connection& connection, const RegisterMessage& message);
  /// Tells a process something final and drops whatever it sends, until the deadline.
  void dismiss(Connection& connection, RegisterMessage::Kind kind, const std::string& reason,
               std::chrono::milliseconds time);
  void close(Connection& connection, const std::string& reason);
  void tell_removed();
  void tell_membership();
  void close_overdue();

  RegisterOptions options_;
  CoordinationOptions handshake_;
  FileDescriptor listener_;
  int port_ = 0;
  MemberRegister register_;
  std::list<Connection> connections_;
  Time now_;
  Time served_;  ///< end of the last serve()
  Time next_accept_;
  Time next_warning_;  ///< rate limit of warnings about refused processes
};

}  // namespace tessera::detail
