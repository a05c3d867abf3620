#include <tessera/framework/base/internal/hex.hpp>

#include <cstdint>

namespace tessera::detail {

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char each : bytes) {
    const auto byte = static_cast<uint8_t>(each);
    text += {digits[byte >> 4], digits[byte & 15]};
  }
  return text;
}

}  // namespace tessera::detail
