#pragma once

#include <string>
#include <string_view>

namespace tessera::detail {

/// Returns each byte as two lower-case hexadecimal digits.
std::string to_hex(std::string_view bytes);

}  // namespace tessera::detail
