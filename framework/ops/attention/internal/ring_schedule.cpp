#include <tessera/framework/ops/attention/internal/ring_schedule.hpp>

#include <algorithm>
#include <utility>

namespace tessera::detail {
namespace {

int64_t middle(Interval part) { return part.lo + part.size() / 2; }

}  // namespace

RingSchedule::RingSchedule(std::vector<Interval> parts, const RingOptions& form)
    : parts_(std::move(parts)), form_(form) {
  // There is nothing to swap.
  if (parts_.back().hi == 0) form_.zigzag = false;
  for (int64_t m = 0; m < members(); ++m) {
    const int64_t other = partner(m);
    if (other == m) {
      runs_.push_back({part(m)});
    } else {
      runs_.push_back({{part(m).lo, middle(part(m))}, given(other)});
    }
  }
  for (int64_t hop = 1; hop < members(); ++hop) {
    for (int64_t m = 0; m < members(); ++m) {
      if (form_.every || !pairs(m, hop).empty()) hops_ = hop;
    }
  }
}

int64_t RingSchedule::partner(int64_t member) const {
  return form_.zigzag ? members() - 1 - member : member;
}

Interval RingSchedule::given(int64_t member) const {
  if (partner(member) == member) return {};
  return {middle(part(member)), part(member).hi};
}

// The nearest earlier steps come first, so that a causal window ends the rotation early.
int64_t RingSchedule::source(int64_t member, int64_t hop) const {
  return (member - hop % members() + members()) % members();
}

bool RingSchedule::meet(Interval rows, Interval keys) const {
  if (rows.empty() || keys.empty()) return false;
  const int64_t min_distance = rows.lo - keys.hi + 1, max_distance = rows.hi - 1 - keys.lo;
  if (form_.causal && max_distance < 0) return false;
  return !form_.window || (min_distance < *form_.window && max_distance > -*form_.window);
}

std::vector<RingSchedule::Pair> RingSchedule::pairs(int64_t member, int64_t hop) const {
  std::vector<Pair> list;
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
  for (const Pair& pair : pairs(member, hop)) {
    const Interval rows = runs(member)[pair.rows], keys = runs(source(member, hop))[pair.keys];
    for (int64_t t = rows.lo; t < rows.hi; ++t) {
      Interval open = keys;
      if (form_.causal) open.hi = std::min(open.hi, t + 1);
      if (form_.window) {
        open = intersect(open, {t - *form_.window + 1, t + *form_.window});
      }
      sum += std::max<int64_t>(0, open.size());
    }
  }
  return sum;
}

}  // namespace tessera::detail
