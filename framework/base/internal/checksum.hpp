#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace tessera::detail {

/// Returns the XXH3-128 of `bytes` as 32 lower-case hexadecimal digits, like `xxh128sum`.
std::string xxh128(std::span<const std::byte> bytes);

/// Incremental XXH3-128.
class Xxh128 {
 public:
  Xxh128();
  ~Xxh128();
  Xxh128(const Xxh128&) = delete;
  Xxh128& operator=(const Xxh128&) = delete;

  void update(std::span<const std::byte> bytes);
  /// Returns the digest of all bytes so far.
  std::string digits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::detail
