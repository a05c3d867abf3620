#pragma once

#include <cstdint>
#include <string>

namespace tessera::detail {

/// Returns how many bytes this process may still allocate before the kernel's OOM killer acts: the
/// machine's available memory, or what the tightest enclosing control group (a container's) leaves.
/// Reclaimable page cache counts as free. UINT64_MAX if neither is known. `root` is prepended to
/// the paths that are read.
uint64_t available_memory(const std::string& root = "");

}  // namespace tessera::detail
