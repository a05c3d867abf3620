#pragma once

#include <string>

namespace tessera::detail {

/// Identifies the build: the linker's build ids of the program and of Tessera's library, in hex.
std::string build_id();

}  // namespace tessera::detail
