#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// Atomically replaces the file at `path` by a text: after a crash or a full disk readers see
/// either the old file or the new one, and on return the bytes are on disk. Throws FileError naming
/// the path and the system's reason; no temporary is left.
void write_file(const std::string& path, std::string_view text);

}  // namespace tessera
