#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace tessera::detail {

/// XXH3-128 of bytes as 32 lower-case hexadecimal digits, as `xxh128sum` prints it.
std::string xxh128(std::span<const std::byte> bytes);

/// The XXH3-128 of bytes that come in parts.
class Xxh128 {
 public:
  Xxh128();
  ~Xxh128();
  Xxh128(const Xxh128&) = delete;
  Xxh128& operator=(const Xxh128&) = delete;

  void update(std::span<const std::byte> bytes);
  /// The digits of all bytes so far.
  std::string digits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::detail
