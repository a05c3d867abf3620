#pragma once

#include <string>
#include <vector>

namespace tessera::detail {

/// Returns the IP addresses of this host's network interfaces, without loopback and link-local
/// ones.
std::vector<std::string> own_addresses();

/// Returns the address by which to reach another host, whose own_addresses() and name are given:
/// the first that its name resolves to, as that is its administrators' choice, else the first in a
/// network of this host, else the first. An address that this host has too (a bridge of containers)
/// is left out. Returns "" if none is left.
std::string reachable_address(const std::string& name, const std::vector<std::string>& addresses);

}  // namespace tessera::detail
