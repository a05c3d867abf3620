#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tessera::detail {

/// Encodes bytes in base64 (RFC 4648, section 4, with padding).
std::string to_base64(std::string_view bytes);

/// Decodes base64 (RFC 4648, section 4, with padding); nothing for any other text.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace tessera::detail
