#include <tessera/framework/io/format/rectangle_runs.hpp>

#include <tuple>
#include <vector>

#include "tests/support/catch.hpp"

namespace rectangle_runs_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

using Runs = std::vector<std::tuple<uint64_t, uint64_t, uint64_t>>;

Runs runs_of(const Rectangle& from, const Rectangle& to, uint64_t element) {
  Runs runs;
  for_each_run(from, to, element,
               [&](const CommonRun& run) { runs.emplace_back(run.source, run.target, run.bytes); });
  return runs;
}

/// Returns the offset in `from` of each element of `to`, or -1 if it is outside.
std::vector<int64_t> offsets_in(const Rectangle& from, const Rectangle& to) {
  std::vector<int64_t> actual;
  for (int64_t i = to.begin[0]; i < to.end[0]; ++i) {
    for (int64_t j = to.begin[1]; j < to.end[1]; ++j) {
      for (int64_t k = to.begin[2]; k < to.end[2]; ++k) {
        const bool inside = i >= from.begin[0] && i < from.end[0] && j >= from.begin[1] &&
                            j < from.end[1] && k >= from.begin[2] && k < from.end[2];
        const int64_t row = (i - from.begin[0]) * from.size(1) + j - from.begin[1];
        actual.push_back(inside ? row * from.size(2) + k - from.begin[2] : -1);
      }
    }
  }
  return actual;
}

}  // namespace

TEST_CASE("runs extend as far as both rectangles are contiguous") {
  const Rectangle all = full_rectangle({4, 6, 5});
  CHECK(all == Rectangle{{0, 0, 0}, {4, 6, 5}});
  CHECK(runs_of(all, all, 4) == Runs{{0, 0, 480}});
  CHECK(runs_of(all, {{1, 0, 0}, {3, 6, 5}}, 4) == Runs{{120, 0, 240}});
  CHECK(runs_of({{1, 0, 0}, {3, 6, 5}}, all, 4) == Runs{{0, 120, 240}});
  CHECK(runs_of(all, {{1, 2, 0}, {3, 4, 5}}, 4) == Runs{{160, 0, 40}, {280, 40, 40}});
  CHECK(runs_of(all, {{0, 5, 3}, {2, 6, 5}}, 1) == Runs{{28, 0, 2}, {58, 2, 2}});
  CHECK(runs_of(full_rectangle({7}), {{2}, {5}}, 8) == Runs{{16, 0, 24}});
}

TEST_CASE("a scalar is one run; disjoint rectangles have none") {
  CHECK(runs_of(full_rectangle({}), full_rectangle({}), 8) == Runs{{0, 0, 8}});
  CHECK(runs_of(full_rectangle({4, 6}), {{4, 0}, {4, 6}}, 4).empty());
  CHECK(runs_of(full_rectangle({0, 6}), full_rectangle({0, 6}), 4).empty());
  CHECK(runs_of({{0, 0}, {2, 6}}, {{2, 0}, {4, 6}}, 4).empty());
}

TEST_CASE("runs visit every common element once, in order, for all pairs of rectangles") {
  std::vector<Rectangle> list;
  for (const auto& [a, b] : {std::pair<int64_t, int64_t>{0, 3}, {1, 2}, {0, 2}, {2, 2}}) {
    for (const auto& [c, d] : {std::pair<int64_t, int64_t>{0, 2}, {1, 2}}) {
      for (const auto& [e, f] : {std::pair<int64_t, int64_t>{0, 4}, {2, 4}, {1, 3}}) {
        list.push_back({{a, c, e}, {b, d, f}});
      }
    }
  }
  size_t pairs = 0;
  for (const Rectangle& from : list) {
    for (const Rectangle& to : list) {
      const std::vector<int64_t> expected = offsets_in(from, to);
      std::vector<int64_t> actual(expected.size(), -1);
      int64_t last = -1;
      bool in_order = true;
      for (const auto& [source, target, bytes] : runs_of(from, to, 2)) {
        for (uint64_t at = 0; at < bytes / 2; ++at) {
          in_order = in_order && int64_t(source / 2 + at) > last;
          last = int64_t(source / 2 + at);
          actual.at(target / 2 + at) = last;
        }
      }
      pairs += actual == expected && in_order;
    }
  }
  CHECK(pairs == list.size() * list.size());
}

}  // namespace rectangle_runs_test
