#pragma once

#include <string>

namespace tessera::detail {

/// Returns the SHA-256 of an open file's contents, 64 lower-case hexadecimal digits; empty if it
/// cannot be read. The file's position does not change.
std::string sha256_of(int descriptor);

}  // namespace tessera::detail
