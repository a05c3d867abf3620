#pragma once

#include <vector>

namespace tessera::detail {

/// Returns distinct free TCP ports of 127.0.0.1. Throws ConfigError if there are none.
std::vector<int> free_ports(int count);
int free_port();

}  // namespace tessera::detail
