#pragma once

#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/cluster/coordination/wire_format.hpp>

namespace tessera::detail {

/// Sends and receives frames over a non-blocking connection. One thread may send while another one
/// receives.
class FrameSocket {
 public:
  explicit FrameSocket(FileDescriptor descriptor, size_t max_body = max_body_bytes);

  int descriptor() const { return descriptor_.get(); }
  bool valid() const { return descriptor_.valid(); }
  void close() { descriptor_.reset(); }
  /// Gives up the connection and returns it.
  FileDescriptor release() { return std::move(descriptor_); }
  void set_max_body(size_t bytes) { in_.set_max_body(bytes); }
  /// Protects all further frames of both directions by tags, and their bodies by encryption if it
  /// `encrypts`. Not while another thread uses the socket.
  void protect(const SessionKeys& keys, bool encrypts);

  /// Sends as much as possible without blocking and keeps the rest for flush(). A broken connection
  /// is reported by receive().
  void send(FrameType type, std::string_view body = {});
  void flush();
  bool has_unsent() const { return sent_ < out_.size(); }
  /// Shuts down the sending direction.
  void finish_sending();

  /// Reads the available bytes. Returns false once the peer has closed the connection.
  bool receive();
  /// Calls FrameBuffer::next().
  std::optional<Frame> next() { return in_.next(); }
  /// Drops all received bytes.
  void discard() { in_.clear(); }

 private:
  FileDescriptor descriptor_;
  FrameBuffer in_;
  std::optional<FrameProtection> out_protection_;
  std::string out_;
  size_t sent_ = 0;
};

/// Wakes a thread that is blocked in poll(2).
class Waker {
 public:
  Waker();
  int descriptor() const { return descriptor_.get(); }
  void wake();
  void clear();

 private:
  FileDescriptor descriptor_;
};

/// Returns "host:port", with an IPv6 address in brackets.
std::string address_text(const std::string& host, int port);

/// Returns a socket listening on `port`: on loopback only if `address` is a loopback address, else
/// on all addresses, as a host's own name often resolves differently on that host. Throws CommError
/// naming the port.
FileDescriptor listen_on(const std::string& address, int port);

/// Returns a socket listening at one address of this host and stores its port in `port`. Invalid on
/// failure, with the system's reason in `error`.
FileDescriptor listen_at(const std::string& address, int& port, std::string& error);

/// Accepts the next connection, non-blocking; invalid with errno set if there is none.
FileDescriptor accept_from(const FileDescriptor& listener);

/// Looks the address up and tries once to connect, for at most five seconds and not beyond the
/// deadline; the connection is non-blocking. Invalid on failure, with the system's reason in
/// `error`.
FileDescriptor connect_to(const std::string& address, int port,
                          std::chrono::steady_clock::time_point deadline, std::string& error);

/// An address for connect(2).
struct SocketAddress {
  sockaddr_storage name = {};
  socklen_t size = 0;
};

/// Connects to the first of a host's addresses that answers. They share the time until the
/// deadline: one that does not answer leaves the next ones their part. Otherwise like connect_to().
FileDescriptor connect_to_any(std::span<const SocketAddress> addresses,
                              std::chrono::steady_clock::time_point deadline, std::string& error);

/// Returns both ends of a connection inside this process. Throws CommError.
std::pair<FileDescriptor, FileDescriptor> connected_pair();

/// Return the IP addresses of a connection's remote and local end; empty inside one process.
std::string other_address(int descriptor);
std::string own_address(int descriptor);

/// Returns the milliseconds until `time` for poll(2): at least 0, rounded up.
int poll_time(std::chrono::steady_clock::time_point time);

}  // namespace tessera::detail
