#include <tessera/framework/ops/attention/internal/ring_schedule.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"

namespace ring_schedule_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Returns the most pairs of steps that a device computes, relative to the mean over devices.
double imbalance(int64_t t, int64_t devices, const RingOptions& options) {
  std::vector<Interval> shards;
  for (int64_t i = 0; i < devices; ++i) shards.push_back(shard_interval(t, devices, i));
  const RingSchedule schedule(shards, options);
  double largest = 0, sum = 0;
  for (int64_t m = 0; m < devices; ++m) {
    double own = 0;
    for (int64_t hop = 0; hop <= schedule.hops(); ++hop) own += double(schedule.scores(m, hop));
    largest = std::max(largest, own);
    sum += own;
  }
  CHECK(sum == double(t) * double(t + 1) / 2);
  return largest / (sum / double(devices));
}

}  // namespace

TEST_CASE("in zigzag every device of a causal ring computes equally much") {
  for (const int64_t k : {2, 3, 4, 7, 8, 64}) {
    for (const int64_t t : {512, 1000, 8192}) {
      CAPTURE(k, t);
      const double naive = imbalance(t, k, {.causal = true});
      const double balanced = imbalance(t, k, {.causal = true, .zigzag = true});
      CHECK(balanced < 1.1);
      CHECK(naive > 1.1);
      // The last device computes all of k shards but half of its own, on average a device half of
      // them.
      CHECK(naive == Approx((2 * double(k) - 1) / double(k)).epsilon(0.05));
    }
  }
}

TEST_CASE("a schedule pairs every step once with each step that it attends to") {
  for (const RingOptions& options : std::vector<RingOptions>{{},
                                                             {.causal = true},
                                                             {.causal = true, .zigzag = true},
                                                             {.zigzag = true},
                                                             {.causal = true, .window = 4},
                                                             {.window = 3, .zigzag = true}}) {
    for (const auto& [t, k] : std::vector<std::pair<int64_t, int64_t>>{{17, 4}, {3, 5}, {9, 3}}) {
      std::vector<Interval> shards;
      for (int64_t i = 0; i < k; ++i) shards.push_back(shard_interval(t, k, i));
      const RingSchedule schedule(shards, options);
      const at::Tensor met = at::zeros({t, t}, at::kLong);
      for (int64_t m = 0; m < k; ++m) {
        for (int64_t hop = 0; hop <= schedule.hops(); ++hop) {
          const int64_t source = schedule.source(m, hop);
          for (const RingSchedule::Tile tile : schedule.tiles(m, hop)) {
            const Interval rows = schedule.runs(m)[tile.rows];
            const Interval keys = schedule.runs(source)[tile.keys];
            met.narrow(0, rows.lo, rows.size()).narrow(1, keys.lo, keys.size()).add_(1);
          }
        }
      }
      const at::Tensor ahead = at::arange(t).unsqueeze(-1) - at::arange(t);
      at::Tensor open = at::ones({t, t}, at::kBool);
      if (options.causal) open = open.logical_and(ahead.ge(0));
      if (options.window) open = open.logical_and(ahead.abs().lt(*options.window));
      CHECK(met.max().item<int64_t>() == 1);
      CHECK(met.masked_select(open).eq(1).all().item<bool>());
    }
  }
}

}  // namespace ring_schedule_test
