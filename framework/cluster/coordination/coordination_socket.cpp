#include <tessera/framework/cluster/coordination/coordination_socket.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>

namespace tessera::detail {
namespace {

using std::chrono::steady_clock;

/// Maximum bytes read at a time, so that one busy connection does not starve the others.
constexpr size_t max_read_bytes = size_t{1} << 20;

/// Maximum time of one attempt to connect, over all addresses of a host.
constexpr std::chrono::seconds max_connect_time{5};

std::vector<SocketAddress> resolve(const std::string& address, int port, std::string& error) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* info = nullptr;
  const int status = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &info);
  if (status != 0) error = str("address ", address, ": ", ::gai_strerror(status));
  if (status != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(info, &freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* each = info; each != nullptr; each = each->ai_next) {
    SocketAddress& copy = addresses.emplace_back();
    copy.size = std::min<socklen_t>(each->ai_addrlen, sizeof copy.name);
    std::memcpy(&copy.name, each->ai_addr, copy.size);
  }
  return addresses;
}

FileDescriptor open_socket(const SocketAddress& address) {
  return FileDescriptor(
      ::socket(address.name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

const sockaddr* name_of(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.name);
}

void send_at_once(int descriptor) {
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Returns a socket listening on the loopback or any address of a family; invalid with errno set on
/// failure.
FileDescriptor listen_on_family(int family, bool loopback, int port) {
  FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return socket;
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  int bound = -1;
  if (family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 name{};
    name.sin6_family = AF_INET6;
    name.sin6_port = htons(static_cast<uint16_t>(port));
    name.sin6_addr = loopback ? in6addr_loopback : in6addr_any;
    bound = ::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name);
  } else {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<uint16_t>(port));
    name.sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
    bound = ::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name);
  }
  if (bound != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
    const int reason = errno;
    socket.reset();
    errno = reason;
  }
  return socket;
}

/// Waits until a pending connect() has finished. Returns false with errno set if it failed.
bool finish_connecting(int descriptor, steady_clock::time_point deadline) {
  pollfd entry{descriptor, POLLOUT, 0};
  int ready = ::poll(&entry, 1, poll_time(deadline));
  while (ready < 0 && errno == EINTR) ready = ::poll(&entry, 1, poll_time(deadline));
  if (ready == 0) errno = ETIMEDOUT;
  if (ready <= 0) return false;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) == 0) errno = error;
  return error == 0;
}

/// Whether a connection is to itself (TCP simultaneous open): when connecting to a local port on
/// which nobody listens, the system may choose that same port for this end.
bool is_own_end(int descriptor) {
  sockaddr_storage own{};
  sockaddr_storage other{};
  socklen_t own_size = sizeof own;
  socklen_t other_size = sizeof other;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &own_size);
  ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&other), &other_size);
  return own_size == other_size && std::memcmp(&own, &other, own_size) == 0;
}

int own_port(int descriptor) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<sockaddr_in&>(name).sin_port);
}

std::string digits(const sockaddr_storage& name, socklen_t size) {
  if (name.ss_family != AF_INET && name.ss_family != AF_INET6) return "";
  std::array<char, NI_MAXHOST> host{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&name), size, host.data(), host.size(),
                    nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  // IPv4-mapped IPv6 address.
  const std::string text = host.data();
  const std::string prefix = "::ffff:";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

}  // namespace

FrameSocket::FrameSocket(FileDescriptor descriptor, size_t max_body)
    : descriptor_(std::move(descriptor)), in_(max_body) {}

void FrameSocket::send(FrameType type, std::string_view body) {
  out_ += encode_frame(type, body, out_protection_ ? &*out_protection_ : nullptr);
  flush();
}

void FrameSocket::protect(const SessionKeys& keys, bool encrypts) {
  out_protection_ = FrameProtection{MessageCipher(keys.send), encrypts};
  in_.protect({MessageCipher(keys.receive), encrypts});
}

void FrameSocket::flush() {
  while (has_unsent()) {
    const ssize_t count = ::send(descriptor_.get(), out_.data() + sent_, out_.size() - sent_,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) break;
    sent_ += static_cast<size_t>(count);
  }
  out_.clear();
  sent_ = 0;
}

void FrameSocket::finish_sending() { ::shutdown(descriptor_.get(), SHUT_WR); }

bool FrameSocket::receive() {
  std::array<char, 65536> bytes{};
  for (size_t total = 0; total < max_read_bytes;) {
    const ssize_t count = ::recv(descriptor_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return true;
    if (count <= 0) return false;
    in_.append({bytes.data(), static_cast<size_t>(count)});
    total += static_cast<size_t>(count);
  }
  return true;
}

Waker::Waker() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!descriptor_.valid()) {
    throw CommError("coordination", "the system can open descriptors", std::strerror(errno),
                    "close files, or raise the limit (ulimit -n)");
  }
}

void Waker::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t count = ::write(descriptor_.get(), &one, sizeof one);
}

void Waker::clear() {
  uint64_t value = 0;
  [[maybe_unused]] const ssize_t count = ::read(descriptor_.get(), &value, sizeof value);
}

std::string address_text(const std::string& host, int port) {
  const bool brackets = host.find(':') != std::string::npos;
  return brackets ? str("[", host, "]:", port) : str(host, ":", port);
}

FileDescriptor listen_on(const std::string& address, int port) {
  const bool loopback = is_loopback(address);
  const bool first_six = loopback ? address == "::1" : true;
  FileDescriptor socket = listen_on_family(first_six ? AF_INET6 : AF_INET, loopback, port);
  const bool no_six = errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL;
  if (!socket.valid() && first_six && no_six) socket = listen_on_family(AF_INET, loopback, port);
  if (socket.valid()) return socket;
  const bool taken = errno == EADDRINUSE;
  throw CommError("coordination", str("rank 0 can listen on port ", port), std::strerror(errno),
                  taken ? str("end the program that holds port ", port,
                              " (a run before this one?), or give all ranks another port")
                        : std::string("give all ranks another port"));
}

FileDescriptor listen_at(const std::string& address, int& port, std::string& error) {
  for (const SocketAddress& each : resolve(address, 0, error)) {
    FileDescriptor socket = open_socket(each);
    if (socket.valid() && ::bind(socket.get(), name_of(each), each.size) == 0 &&
        ::listen(socket.get(), SOMAXCONN) == 0) {
      port = own_port(socket.get());
      return socket;
    }
    error = std::strerror(errno);
  }
  return FileDescriptor();
}

FileDescriptor accept_from(const FileDescriptor& listener) {
  FileDescriptor accepted(
      ::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (accepted.valid()) send_at_once(accepted.get());
  return accepted;
}

FileDescriptor connect_to(const std::string& address, int port, steady_clock::time_point deadline,
                          std::string& error) {
  const std::vector<SocketAddress> addresses = resolve(address, port, error);
  deadline = std::min(deadline, steady_clock::now() + max_connect_time);
  return connect_to_any(addresses, deadline, error);
}

FileDescriptor connect_to_any(std::span<const SocketAddress> addresses,
                              steady_clock::time_point deadline, std::string& error) {
  auto left = std::ssize(addresses);
  for (const SocketAddress& each : addresses) {
    // An address that drops all packets must not use up the time of the others.
    const steady_clock::time_point now = steady_clock::now();
    const steady_clock::time_point until = now + (deadline - now) / left--;
    FileDescriptor socket = open_socket(each);
    if (socket.valid()) {
      const int status = ::connect(socket.get(), name_of(each), each.size);
      const bool pending = status != 0 && (errno == EINPROGRESS || errno == EINTR);
      if (status == 0 || (pending && finish_connecting(socket.get(), until))) {
        send_at_once(socket.get());
        if (!is_own_end(socket.get())) return socket;
        errno = ECONNREFUSED;
      }
    }
    error = std::strerror(errno);
  }
  return FileDescriptor();
}

std::pair<FileDescriptor, FileDescriptor> connected_pair() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    throw CommError("coordination", "the system can open sockets", std::strerror(errno),
                    "close files, or raise the limit (ulimit -n)");
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::string other_address(int descriptor) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  const bool known = ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&name), &size) == 0;
  return known ? digits(name, size) : "";
}

std::string own_address(int descriptor) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  const bool known = ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &size) == 0;
  return known ? digits(name, size) : "";
}

int poll_time(steady_clock::time_point time) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
}

}  // namespace tessera::detail
