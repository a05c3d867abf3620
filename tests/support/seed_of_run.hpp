#pragma once

#include <cstdint>
#include <cstdlib>

#include "tests/support/catch.hpp"

namespace tessera::test {

/// Returns $TESSERA_TEST_SEED, or the seed of this run of tests. What a run of tests draws with it
/// is another part of the whole each time; the nightly cases run the whole.
inline uint64_t seed_of_run() {
  const char* const seed = std::getenv("TESSERA_TEST_SEED");
  return seed ? std::strtoull(seed, nullptr, 10) : Catch::rngSeed();
}

}  // namespace tessera::test
