#pragma once

#include <cstdint>
#include <string>

namespace tessera::detail {

/// Bytes that this process may still take before the kernel has to end one: what the machine has
/// available, or what the narrowest of the control groups around the process leaves, as a
/// container's; pages of files that can be dropped count as free. The greatest number where nothing
/// tells. `root` stands before the paths that are read.
uint64_t available_memory(const std::string& root = "");

}  // namespace tessera::detail
