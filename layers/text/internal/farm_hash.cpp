#include <tessera/layers/text/internal/farm_hash.hpp>

#include <bit>
#include <cstring>
#include <utility>

namespace tessera::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

constexpr uint64_t k0 = 0xc3a5c85c97cb3127u;
constexpr uint64_t k1 = 0xb492b66fbe98f273u;
constexpr uint64_t k2 = 0x9ae16a3b2f90404fu;

struct Pair {
  uint64_t first = 0;
  uint64_t second = 0;
};

uint64_t word(const char* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint64_t half_word(const char* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint64_t shifted(uint64_t value) { return value ^ (value >> 47); }

uint64_t mixed(uint64_t a, uint64_t b, uint64_t factor) {
  const uint64_t inner = shifted((a ^ b) * factor);
  return shifted((b ^ inner) * factor) * factor;
}

uint64_t up_to_16(const char* at, size_t size) {
  const uint64_t factor = k2 + size * 2;
  if (size >= 8) {
    const uint64_t a = word(at) + k2;
    const uint64_t b = word(at + size - 8);
    return mixed(std::rotr(b, 37) * factor + a, (std::rotr(a, 25) + b) * factor, factor);
  }
  if (size >= 4) {
    return mixed(size + (half_word(at) << 3), half_word(at + size - 4), factor);
  }
  if (size == 0) return k2;
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(at[i])); };
  const uint32_t y = byte(0) + (byte(size >> 1) << 8);
  const uint32_t z = static_cast<uint32_t>(size) + (byte(size - 1) << 2);
  return shifted(y * k2 ^ z * k0) * k2;
}

uint64_t up_to_32(const char* at, size_t size) {
  const uint64_t factor = k2 + size * 2;
  const uint64_t a = word(at) * k1;
  const uint64_t b = word(at + 8);
  const uint64_t c = word(at + size - 8) * factor;
  const uint64_t d = word(at + size - 16) * k2;
  return mixed(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + k2, 18) + c, factor);
}

uint64_t up_to_64(const char* at, size_t size) {
  const uint64_t factor = k2 + size * 2;
  const uint64_t a = word(at) * k2;
  const uint64_t b = word(at + 8);
  const uint64_t c = word(at + size - 8) * factor;
  const uint64_t d = word(at + size - 16) * k2;
  const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const uint64_t z = mixed(y, a + std::rotr(b + k2, 18) + c, factor);
  const uint64_t e = word(at + 16) * factor;
  const uint64_t f = word(at + 24);
  const uint64_t g = (y + word(at + size - 32)) * factor;
  const uint64_t h = (z + word(at + size - 24)) * factor;
  return mixed(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, factor);
}

Pair weak(const char* at, uint64_t a, uint64_t b) {
  a += word(at);
  b = std::rotr(b + a + word(at + 24), 21);
  const uint64_t c = a;
  a += word(at + 8) + word(at + 16);
  b += std::rotr(a, 44);
  return {a + word(at + 24), b + c};
}

uint64_t longer(const char* at, size_t size) {
  uint64_t x = 81;
  uint64_t y = x * k1 + 113;
  uint64_t z = shifted(y * k2 + 113) * k2;
  Pair v, w;
  x = x * k2 + word(at);
  const char* const end = at + (size - 1) / 64 * 64;
  const uint64_t rest = (size - 1) & 63;
  while (at != end) {
    x = std::rotr(x + y + v.first + word(at + 8), 37) * k1;
    y = std::rotr(y + v.second + word(at + 48), 42) * k1;
    x ^= w.second;
    y += v.first + word(at + 40);
    z = std::rotr(z + w.first, 33) * k1;
    v = weak(at, v.second * k1, x + w.first);
    w = weak(at + 32, z + w.second, y + word(at + 16));
    std::swap(z, x);
    at += 64;
  }
  const uint64_t factor = k1 + ((z & 0xff) << 1);
  at = end + rest - 63;
  w.first += rest;
  v.first += w.first;
  w.first += v.first;
  x = std::rotr(x + y + v.first + word(at + 8), 37) * factor;
  y = std::rotr(y + v.second + word(at + 48), 42) * factor;
  x ^= w.second * 9;
  y += v.first * 9 + word(at + 40);
  z = std::rotr(z + w.first, 33) * factor;
  v = weak(at, v.second * factor, x + w.first);
  w = weak(at + 32, z + w.second, y + word(at + 16));
  std::swap(z, x);
  return mixed(mixed(v.first, w.first, factor) + shifted(y) * k0 + z,
               mixed(v.second, w.second, factor) + x, factor);
}

}  // namespace

uint64_t fingerprint64(std::string_view bytes) {
  const size_t size = bytes.size();
  if (size <= 16) return up_to_16(bytes.data(), size);
  if (size <= 32) return up_to_32(bytes.data(), size);
  if (size <= 64) return up_to_64(bytes.data(), size);
  return longer(bytes.data(), size);
}

}  // namespace tessera::detail
