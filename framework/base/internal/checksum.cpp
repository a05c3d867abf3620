#include <tessera/framework/base/internal/checksum.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <tessera/framework/base/internal/hex.hpp>

namespace tessera::detail {
namespace {

std::string hexadecimal(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  return to_hex({reinterpret_cast<const char*>(canonical.digest), sizeof canonical.digest});
}

}  // namespace

struct Xxh128::State {
  State() {
    XXH3_INITSTATE(&hash);
    XXH3_128bits_reset(&hash);
  }
  XXH3_state_t hash;
};

std::string xxh128(std::span<const std::byte> bytes) {
  return hexadecimal(XXH3_128bits(bytes.data(), bytes.size()));
}

Xxh128::Xxh128() : state_(std::make_unique<State>()) {}
Xxh128::~Xxh128() = default;

void Xxh128::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size());
}

std::string Xxh128::digits() const { return hexadecimal(XXH3_128bits_digest(&state_->hash)); }

}  // namespace tessera::detail
