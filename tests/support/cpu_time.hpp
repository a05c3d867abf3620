#pragma once

#include <time.h>

#include <algorithm>
#include <functional>

namespace tessera::test {

/// What this thread computes for `work`, in seconds, the least of three times: what else runs on
/// the machine does not count.
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
