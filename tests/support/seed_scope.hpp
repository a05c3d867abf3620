#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera::test {

/// What is drawn after it follows from the former seed again, whatever is set while it is alive.
class SeedScope {
 public:
  SeedScope() = default;
  explicit SeedScope(int64_t seed) { set_random_seed(seed); }
  ~SeedScope() { set_random_seed(former_); }
  SeedScope(const SeedScope&) = delete;
  SeedScope& operator=(const SeedScope&) = delete;

 private:
  int64_t former_ = detail::global_seed();
};

}  // namespace tessera::test
