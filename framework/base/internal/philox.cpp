#include <tessera/framework/base/internal/philox.hpp>

namespace tessera::detail::philox {
namespace {

/// Like generate(), for all counters (c[0][i], c[1][i], c[2][i], c[3][i]) at once.
void generate(std::array<std::array<uint32_t, lanes>, 4>& c, Key key) {
  for (int round = 0; round < 10; ++round) {
    for (size_t i = 0; i < lanes; ++i) {  // inlined by hand: the compiler vectorizes this form
      const uint64_t p0 = multiplier_0 * c[0][i], p1 = multiplier_1 * c[2][i];
      c[0][i] = high(p1) ^ c[1][i] ^ key[0];
      c[1][i] = low(p1);
      c[2][i] = high(p0) ^ c[3][i] ^ key[1];
      c[3][i] = low(p0);
    }
    next_key(key);
  }
}

}  // namespace

std::array<uint32_t, 4 * lanes> Stream::blocks(uint64_t first) const {
  std::array<std::array<uint32_t, lanes>, 4> c;
  for (size_t i = 0; i < lanes; ++i) {
    c[0][i] = low(first + i);
    c[1][i] = high(first + i);
    c[2][i] = low(upper_);
    c[3][i] = high(upper_);
  }
  generate(c, key_);
  std::array<uint32_t, 4 * lanes> words;
  for (size_t i = 0; i < lanes; ++i) {
    for (size_t w = 0; w < 4; ++w) words[4 * i + w] = c[w][i];
  }
  return words;
}

}  // namespace tessera::detail::philox
