#include <tessera/framework/base/internal/base64.hpp>

#include <algorithm>
#include <cstdint>

namespace tessera::detail {
namespace {

/// Returns the six bits of a character; -1 for one outside the alphabet.
int bits_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < count ? static_cast<uint8_t>(bytes[at + i]) : 0);
    }
    for (size_t i = 0; i < 4; ++i) text += i > count ? '=' : digits[bits >> (18 - 6 * i) & 63];
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  const size_t digits = text.size() - padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < digits; ++i) {
    const int six = bits_of(text[i]);
    if (six < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(six);
    // The first digit of four completes no byte.
    if (i % 4 != 0) bytes.push_back(static_cast<char>(bits >> (6 - 2 * (i % 4))));
  }
  // Bits beyond the last byte are 0.
  const uint32_t rest = padding == 2 ? bits & 15 : padding == 1 ? bits & 3 : 0;
  if (rest != 0) return std::nullopt;
  return bytes;
}

}  // namespace tessera::detail
