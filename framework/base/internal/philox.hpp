#pragma once

#include <array>
#include <cstdint>

#include <tessera/framework/base/random.hpp>

/// Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC '11), the
/// generator behind all random draws.
namespace tessera::detail::philox {

using Words = std::array<uint32_t, 4>;
using Key = std::array<uint32_t, 2>;

inline uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
inline uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

constexpr uint64_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;

inline void next_key(Key& key) {
  key[0] += 0x9E3779B9;
  key[1] += 0xBB67AE85;
}

/// Returns the random words of one counter.
inline Words generate(Words c, Key key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = multiplier_0 * c[0], p1 = multiplier_1 * c[2];
    c = {high(p1) ^ c[1] ^ key[0], low(p1), high(p0) ^ c[3] ^ key[1], low(p0)};
    next_key(key);
  }
  return c;
}

inline Words words_of(Seed seed) {
  const auto a = static_cast<uint64_t>(seed.a);
  const auto b = static_cast<uint64_t>(seed.b);
  return {low(a), high(a), low(b), high(b)};
}

inline uint64_t join(uint32_t lo, uint32_t hi) { return uint64_t{hi} << 32 | lo; }

/// Number of Philox blocks generated together, so that the compiler vectorizes the loop.
constexpr size_t lanes = 32;

/// Random stream of a seed pair: the key and the upper half of the block counter, derived from it
/// as in TensorFlow.
class Stream {
 public:
  explicit Stream(Seed seed) {
    const Words m = generate(words_of(seed), {0x3ec8f720, 0x02461e29});
    key_ = {m[0], m[1]};
    upper_ = join(m[2], m[3]);
  }

  Key key() const { return key_; }
  uint64_t upper() const { return upper_; }

  /// Returns the words of block (upper : lower), counted from the stream's start.
  Words block(uint64_t lower, uint64_t upper = 0) const {
    const uint64_t top = upper_ + upper;
    return generate({low(lower), high(lower), low(top), high(top)}, key_);
  }

  /// Returns the words of blocks [first, first + lanes).
  std::array<uint32_t, 4 * lanes> blocks(uint64_t first) const;

 private:
  Key key_{};
  uint64_t upper_ = 0;
};

}  // namespace tessera::detail::philox
