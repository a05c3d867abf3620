#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera::test {

/// Restores the global seed at the end of its scope, whatever is set meanwhile.
class SeedScope {
 public:
  SeedScope() = default;
  explicit SeedScope(int64_t seed) { set_random_seed(seed); }
  ~SeedScope() { set_random_seed(previous_); }
  SeedScope(const SeedScope&) = delete;
  SeedScope& operator=(const SeedScope&) = delete;

 private:
  int64_t previous_ = detail::global_seed();
};

}  // namespace tessera::test
