#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace tessera::detail {

/// Incremental SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  /// Returns the digest of all bytes, 64 lower-case hexadecimal digits. Call it once.
  std::string digits();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the SHA-256 of an open file's contents, 64 lower-case hexadecimal digits; empty if it
/// cannot be read. The file's position does not change.
std::string sha256_of(int descriptor);

}  // namespace tessera::detail
