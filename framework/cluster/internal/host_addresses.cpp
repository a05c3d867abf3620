#include <tessera/framework/cluster/internal/host_addresses.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

namespace tessera::detail {
namespace {

/// The bytes of an IP address or a network mask in network order: 4 or 16.
using IpBytes = std::string;

IpBytes ip_bytes(const sockaddr* address) {
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    return {reinterpret_cast<const char*>(&four), sizeof four};
  }
  if (address->sa_family != AF_INET6) return "";
  const auto& six = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return {reinterpret_cast<const char*>(&six), sizeof six};
}

IpBytes ip_bytes(const std::string& text) {
  std::array<char, sizeof(in6_addr)> bytes{};
  if (inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return {bytes.data(), sizeof(in_addr)};
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return {bytes.data(), bytes.size()};
  return "";
}

std::string ip_text(const IpBytes& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = bytes.size() == sizeof(in_addr) ? AF_INET : AF_INET6;
  return inet_ntop(family, bytes.data(), text.data(), text.size()) ? text.data() : "";
}

struct OwnInterface {
  IpBytes address;
  IpBytes mask;
};

bool is_link_local(const IpBytes& address) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(address[i]); };
  if (address.size() == sizeof(in_addr)) return byte(0) == 169 && byte(1) == 254;
  return byte(0) == 0xfe && (byte(1) & 0xc0) == 0x80;
}

std::vector<OwnInterface> own_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(first, &freeifaddrs);
  std::vector<OwnInterface> interfaces;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    const bool other = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    const IpBytes address = ip_bytes(each->ifa_addr);
    if (!other || address.empty() || is_link_local(address)) continue;
    interfaces.push_back({address, ip_bytes(each->ifa_netmask)});
  }
  return interfaces;
}

bool is_in_network(const IpBytes& address, const OwnInterface& own) {
  if (address.size() != own.address.size() || address.size() != own.mask.size()) return false;
  for (size_t i = 0; i < address.size(); ++i) {
    if (((address[i] ^ own.address[i]) & own.mask[i]) != 0) return false;
  }
  return true;
}

/// Returns the addresses that a name resolves to.
std::vector<IpBytes> resolved_bytes(const std::string& name) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &first) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(first, &freeaddrinfo);
  std::vector<IpBytes> result;
  for (const addrinfo* each = first; each != nullptr; each = each->ai_next) {
    result.push_back(ip_bytes(each->ai_addr));
  }
  return result;
}

}  // namespace

std::vector<std::string> own_addresses() {
  std::vector<std::string> texts;
  for (const OwnInterface& each : own_interfaces()) texts.push_back(ip_text(each.address));
  return texts;
}

std::string reachable_address(const std::string& name, const std::vector<std::string>& addresses) {
  const std::vector<OwnInterface> own = own_interfaces();
  std::vector<IpBytes> left;
  for (const std::string& text : addresses) {
    const IpBytes address = ip_bytes(text);
    const bool shared = std::any_of(
        own.begin(), own.end(), [&](const OwnInterface& each) { return each.address == address; });
    if (!address.empty() && !shared) left.push_back(address);
  }
  if (left.empty()) return "";
  // A name may resolve to something else here, such as an address of this host.
  for (const IpBytes& address : resolved_bytes(name)) {
    if (std::find(left.begin(), left.end(), address) != left.end()) return ip_text(address);
  }
  for (const IpBytes& address : left) {
    for (const OwnInterface& each : own) {
      if (is_in_network(address, each)) return ip_text(address);
    }
  }
  return ip_text(left.front());
}

}  // namespace tessera::detail
