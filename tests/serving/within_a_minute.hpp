#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace tessera::test {

/// Whether `holds` returns true within a minute.
inline bool within_a_minute(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace tessera::test
