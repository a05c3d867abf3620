#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tessera {

/// XXH3-128 of bytes as 32 lower-case hexadecimal digits, as `xxh128sum` prints it.
std::string xxh128(std::span<const std::byte> bytes);

}  // namespace tessera
