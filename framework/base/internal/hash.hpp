#pragma once

#include <cstdint>

namespace tessera::detail {

/// Mixes `value` into `seed` (SplitMix64 of Steele, Lea and Flood). Deterministic across processes.
constexpr uint64_t mix(uint64_t seed, uint64_t value) {
  uint64_t x = seed + 0x9E3779B97F4A7C15 * (value + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace tessera::detail
