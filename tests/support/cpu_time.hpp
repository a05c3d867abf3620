#pragma once

#include <time.h>

#include <algorithm>
#include <functional>

namespace tessera::test {

/// Returns the CPU seconds that this thread needs for `work`, the least of three runs. Other
/// programs on the machine do not count.
inline double cpu_seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double begin = now();
    work();
    least = std::min(least, now() - begin);
  }
  return least;
}

}  // namespace tessera::test
