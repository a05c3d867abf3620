#include "apps/bench/timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace tessera::bench {
namespace {

constexpr int rounds = 15;
/// Duration of a round: long enough for the clock, short enough for a hundred operations.
constexpr double seconds_per_round = 5e-4;

int repetitions(const std::function<void()>& call) {
  call();
  const double seconds = std::min(seconds_of(call), seconds_of(call));
  return static_cast<int>(std::clamp(std::ceil(seconds_per_round / seconds), 1.0, 10000.0));
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double seconds_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<double> seconds_per_call(const std::vector<std::function<void()>>& calls) {
  std::vector<int> counts;
  for (const auto& call : calls) counts.push_back(repetitions(call));
  std::vector<double> least(calls.size(), INFINITY);
  for (int round = 0; round < rounds; ++round) {
    for (size_t c = 0; c < calls.size(); ++c) {
      const double total = seconds_of([&] {
        for (int i = 0; i < counts[c]; ++i) calls[c]();
      });
      least[c] = std::min(least[c], total / counts[c]);
    }
  }
  return least;
}

}  // namespace tessera::bench
