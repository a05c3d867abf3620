#include <tessera/framework/cluster/internal/free_port.hpp>

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {
namespace {

constexpr int first_port = 10000;
constexpr int max_tries = 10000;

/// Binds the socket to `port` (0: any) and returns its port; 0 on failure.
int bind_port(const FileDescriptor& probe, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool bound = bind(probe.get(), any, size) == 0 && getsockname(probe.get(), any, &size) == 0;
  return bound ? ntohs(address.sin_port) : 0;
}

}  // namespace

std::vector<int> free_ports(int count) {
  // Chooses ports below the ephemeral range: the system might give an ephemeral port to a
  // connection before its task is restarted.
  int end = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> end;
  std::random_device random;
  std::uniform_int_distribution<int> below(first_port, std::max(first_port, end - 1));
  std::vector<int> ports;
  // Keeps the ports bound until all are found.
  std::vector<FileDescriptor> taken;
  for (int i = 0; static_cast<int>(ports.size()) < count; ++i) {
    const bool any = end <= first_port || i > max_tries;
    FileDescriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (const int port = bind_port(probe, any ? 0 : below(random)); port > 0) {
      ports.push_back(port);
      taken.push_back(std::move(probe));
    } else if (any) {
      throw ConfigError("ports", "127.0.0.1 has a free port", "none", "close other programs");
    }
  }
  return ports;
}

int free_port() { return free_ports(1)[0]; }

}  // namespace tessera::detail
