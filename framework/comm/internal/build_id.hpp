#pragma once

#include <string>

namespace tessera::detail {

/// What tells builds apart: the linker's build ids of the program and of Tessera's library, in hex.
std::string build_id();

}  // namespace tessera::detail
