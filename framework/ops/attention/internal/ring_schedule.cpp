#include <tessera/framework/ops/attention/internal/ring_schedule.hpp>

#include <algorithm>
#include <utility>

namespace tessera::detail {
namespace {

int64_t middle(Interval interval) { return interval.lo + interval.size() / 2; }

}  // namespace

RingSchedule::RingSchedule(std::vector<Interval> intervals, const RingOptions& options)
    : intervals_(std::move(intervals)), options_(options) {
  // There is nothing to swap.
  if (intervals_.back().hi == 0) options_.zigzag = false;
  for (int64_t m = 0; m < members(); ++m) {
    const int64_t other = partner(m);
    if (other == m) {
      runs_.push_back({interval(m)});
    } else {
      runs_.push_back({{interval(m).lo, middle(interval(m))}, sent_half(other)});
    }
  }
  for (int64_t hop = 1; hop < members(); ++hop) {
    for (int64_t m = 0; m < members(); ++m) {
      if (options_.visit_all || !tiles(m, hop).empty()) hops_ = hop;
    }
  }
}

int64_t RingSchedule::partner(int64_t member) const {
  return options_.zigzag ? members() - 1 - member : member;
}

Interval RingSchedule::sent_half(int64_t member) const {
  if (partner(member) == member) return {};
  return {middle(interval(member)), interval(member).hi};
}

// The nearest earlier steps come first, so that a causal window ends the rotation early.
int64_t RingSchedule::source(int64_t member, int64_t hop) const {
  return (member - hop % members() + members()) % members();
}

bool RingSchedule::meet(Interval rows, Interval keys) const {
  if (rows.empty() || keys.empty()) return false;
  const int64_t min_distance = rows.lo - keys.hi + 1, max_distance = rows.hi - 1 - keys.lo;
  if (options_.causal && max_distance < 0) return false;
  return !options_.window || (min_distance < *options_.window && max_distance > -*options_.window);
}

std::vector<RingSchedule::Tile> RingSchedule::tiles(int64_t member, int64_t hop) const {
  std::vector<Tile> list;
  const std::vector<Interval>&rows = runs(member), &keys = runs(source(member, hop));
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t k = 0; k < keys.size(); ++k) {
      if (meet(rows[r], keys[k])) list.push_back({r, k});
    }
  }
  return list;
}

int64_t RingSchedule::scores(int64_t member, int64_t hop) const {
  int64_t sum = 0;
  for (const Tile& tile : tiles(member, hop)) {
    const Interval rows = runs(member)[tile.rows], keys = runs(source(member, hop))[tile.keys];
    for (int64_t t = rows.lo; t < rows.hi; ++t) {
      Interval open = keys;
      if (options_.causal) open.hi = std::min(open.hi, t + 1);
      if (options_.window) {
        open = intersect(open, {t - *options_.window + 1, t + *options_.window});
      }
      sum += std::max<int64_t>(0, open.size());
    }
  }
  return sum;
}

}  // namespace tessera::detail
