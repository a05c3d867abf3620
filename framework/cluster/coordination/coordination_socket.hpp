#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/cluster/coordination/wire_format.hpp>

namespace tessera::detail {

/// Frames over a connection that never blocks. Writing and reading may be two threads.
class FrameSocket {
 public:
  explicit FrameSocket(FileDescriptor descriptor, size_t max_body = max_body_bytes);

  int descriptor() const { return descriptor_.get(); }
  bool valid() const { return descriptor_.valid(); }
  void close() { descriptor_.reset(); }
  /// The connection, for others to go on with.
  FileDescriptor release() { return std::move(descriptor_); }
  void set_max_body(size_t bytes) { in_.set_max_body(bytes); }

  /// Sends what fits at once and keeps the rest for flush(). A connection that is gone shows where
  /// it is read.
  void send(FrameType type, std::string_view body = {});
  void flush();
  bool has_unsent() const { return sent_ < out_.size(); }
  /// Says that nothing more will be sent.
  void finish_sending();

  /// Takes what has come; false once the other side has closed.
  bool receive();
  /// See FrameBuffer::next().
  std::optional<Frame> next() { return in_.next(); }
  /// Forgets what has come.
  void discard() { in_.clear(); }

 private:
  FileDescriptor descriptor_;
  FrameBuffer in_;
  std::string out_;
  size_t sent_ = 0;
};

/// Wakes a thread that waits in poll(2).
class Waker {
 public:
  Waker();
  int descriptor() const { return descriptor_.get(); }
  void wake();
  void clear();

 private:
  FileDescriptor descriptor_;
};

/// "host:port", an IPv6 address in brackets.
std::string address_text(const std::string& host, int port);

/// A socket that listens on a port: on loopback only if `address` names it, else on all addresses,
/// as a host's own name often stands for another one on that host. Throws CommError naming the
/// port.
FileDescriptor listen_on(const std::string& address, int port);

/// A socket that listens at one address of this host, on a port that it tells. Invalid with the
/// system's reason in `error`.
FileDescriptor listen_at(const std::string& address, int& port, std::string& error);

/// The next connection, not blocking; invalid where there is none, errno set.
FileDescriptor accept_from(const FileDescriptor& listener);

/// One try to connect until the deadline; not blocking afterwards. Invalid with the system's reason
/// in `error`.
FileDescriptor connect_to(const std::string& address, int port,
                          std::chrono::steady_clock::time_point deadline, std::string& error);

/// Two ends of a connection inside the process. Throws CommError.
std::pair<FileDescriptor, FileDescriptor> connected_pair();

/// Addresses in digits of a connection's other and own side; empty for one inside the process.
std::string other_address(int descriptor);
std::string own_address(int descriptor);

/// Milliseconds until `time` for poll(2): at least 0, rounded up.
int poll_time(std::chrono::steady_clock::time_point time);

}  // namespace tessera::detail
