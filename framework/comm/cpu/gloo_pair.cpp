#include <tessera/framework/comm/cpu/gloo_pair.hpp>

#include <fcntl.h>
#include <gloo/transport/tcp/address.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>

namespace tessera::detail {
namespace {

/// Address of the pairs; greater than our_address, so that it is the pair that connects.
constexpr const char* pair_address = "127.0.0.2";
constexpr const char* our_address = "127.0.0.1";

/// The socket addresses of both ends of a connection.
struct Names {
  sockaddr_storage own{};
  sockaddr_storage other{};
};

Names names_of(int descriptor) {
  Names names;
  socklen_t size = sizeof names.own;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&names.own), &size);
  size = sizeof names.other;
  ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&names.other), &size);
  return names;
}

bool same_name(const sockaddr_storage& a, const sockaddr_storage& b) {
  return a.ss_family == AF_INET && std::memcmp(&a, &b, sizeof(sockaddr_in)) == 0;
}

/// Returns this process's descriptor of the other end of a connection; negative if the other end is
/// in another process.
int other_end(const FileDescriptor& connection) {
  const Names here = names_of(connection.get());
  std::error_code ignored;
  for (const std::string& name : names_in("/proc/self/fd", ignored)) {
    const int descriptor = std::stoi(name);
    const Names there = names_of(descriptor);
    if (same_name(here.own, there.other) && same_name(here.other, there.own)) return descriptor;
  }
  return -1;
}

/// Connects a pair to this process. Returns our end, or an invalid descriptor if the pair did not
/// connect.
FileDescriptor connect_here(gloo::transport::Pair& pair) {
  int port = 0;
  std::string error;
  const FileDescriptor listener = listen_at(our_address, port, error);
  if (!listener.valid()) throw CommError("gloo", "this process listens on loopback", error, "");
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* generic = reinterpret_cast<const sockaddr*>(&name);
  pair.connect(gloo::transport::tcp::Address(generic, sizeof name).bytes());
  // The pair has connected by now; any other connection is from another process.
  for (FileDescriptor accepted = accept_from(listener); accepted.valid();
       accepted = accept_from(listener)) {
    if (other_end(accepted) >= 0) return accepted;
  }
  return FileDescriptor();
}

}  // namespace

std::shared_ptr<gloo::transport::tcp::Device> gloo_device() {
  const gloo::transport::tcp::attr where(pair_address);
  return std::make_shared<gloo::transport::tcp::Device>(
      gloo::transport::tcp::CreateDeviceAttr(where));
}

void create_connected_pair(gloo::transport::Context& context, int peer,
                           gloo::transport::tcp::Device& device, const FileDescriptor& connection) {
  gloo::transport::Pair& pair = *context.createPair(peer);
  const FileDescriptor here = connect_here(pair);
  const int descriptor = here.valid() ? other_end(here) : -1;
  auto* handler = dynamic_cast<gloo::transport::tcp::Handler*>(&pair);
  // dup3() closes the last descriptor of the pair's own connection, which ends its registration
  // with the device's epoll.
  if (descriptor < 0 || handler == nullptr || ::dup3(connection.get(), descriptor, O_CLOEXEC) < 0) {
    throw CommError("gloo", "its pairs take connections", "another version of Gloo",
                    "build with the libgloo-dev of Debian 12");
  }
  device.registerDescriptor(descriptor, EPOLLIN, handler);
}

}  // namespace tessera::detail
