#pragma once

#include <string>

namespace tessera::detail {

/// SHA-256 of what an open file holds from its beginning, 64 lower-case hexadecimal digits; empty
/// if it cannot be read. The file's position is left as it was.
std::string sha256_of(int descriptor);

}  // namespace tessera::detail
