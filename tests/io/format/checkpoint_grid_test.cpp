#include <tessera/framework/io/format/checkpoint_grid.hpp>

#include <algorithm>
#include <random>

#include "tests/support/catch.hpp"

namespace checkpoint_grid_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

constexpr int64_t extent = 4;
const Shape square{extent, extent};

/// Returns whether the rectangles cover every element of `square` exactly once.
bool cover_once(const std::vector<Rectangle>& areas) {
  std::vector<int> count(extent * extent);
  for (const Rectangle& area : areas) {
    for (int64_t i = area.begin[0]; i < area.end[0]; ++i) {
      for (int64_t j = area.begin[1]; j < area.end[1]; ++j) ++count[i * extent + j];
    }
  }
  return std::all_of(count.begin(), count.end(), [](int n) { return n == 1; });
}

std::vector<Interval> random_cuts(std::mt19937& random) {
  std::vector<Interval> intervals;
  for (int64_t lo = 0; lo < extent;) {
    const auto hi = std::min<int64_t>(extent, lo + 1 + static_cast<int64_t>(random() % extent));
    intervals.push_back({lo, hi});
    lo = hi;
  }
  return intervals;
}

}  // namespace

TEST_CASE("a grid is found exactly if rectangles form one") {
  std::mt19937 random(3);
  int refused = 0;
  for (int repetition = 0; repetition < 20000; ++repetition) {
    const Grid cuts{random_cuts(random), random_cuts(random)};
    std::vector<Rectangle> areas = cells_of(cuts, {{0, 0}, square});
    std::shuffle(areas.begin(), areas.end(), random);
    Grid found;
    CHECK(find_grid(square, areas, found).empty());
    CHECK(found == cuts);
    Rectangle& changed = areas[random() % areas.size()];
    const size_t axis = random() % 2;
    changed.begin[axis] = static_cast<int64_t>(random() % extent);
    changed.end[axis] =
        changed.begin[axis] + 1 + static_cast<int64_t>(random() % (extent - changed.begin[axis]));
    if (random() % 4 == 0) areas.push_back(areas[random() % areas.size()]);
    if (random() % 4 == 0) areas[random() % areas.size()] = areas[0];
    const bool accepted = find_grid(square, areas, found).empty();
    CHECK(accepted == cover_once(areas));
    refused += !accepted;
  }
  CHECK(refused > 5000);
}

TEST_CASE("rectangles that cover a tensor but form no grid are refused") {
  Grid found;
  CHECK_FALSE(
      find_grid({2, 2}, {{{0, 0}, {1, 1}}, {{0, 1}, {1, 2}}, {{1, 0}, {2, 2}}}, found).empty());
  CHECK(find_grid({2, 2}, {{{0, 0}, {1, 1}}, {{0, 1}, {1, 2}}, {{1, 0}, {2, 1}}, {{1, 0}, {2, 1}}},
                  found) == "twice the piece at (1, 0)");
  CHECK(find_grid({}, {{}}, found).empty());
  CHECK_FALSE(find_grid({}, {{}, {}}, found).empty());
  CHECK_FALSE(find_grid({}, {}, found).empty());
  CHECK(find_grid({3, 0}, {}, found).empty());
}

TEST_CASE("a grid is split into cells of a maximum size") {
  const Grid grid{{{0, 2}, {2, 5}}, {{0, 4}}, {{0, 3}, {3, 10}}};
  for (uint64_t most = 1; most <= 100; ++most) {
    const Grid cut = split_grid(grid, most);
    for (const Rectangle& area : cells_of(grid, {{0, 0, 0}, {5, 4, 10}})) {
      int64_t elements = 0;
      for (const Rectangle& cell : cells_of(cut, area)) {
        const Shape shape = cell.shape();
        CHECK(static_cast<uint64_t>(numel(shape)) <= most);
        // Cells are contiguous: after the first axis with an extent above one, every axis is full.
        bool cut_before = false;
        for (size_t axis = 0; axis < shape.size(); ++axis) {
          if (cut_before) CHECK(shape[axis] == area.size(axis));
          cut_before = cut_before || shape[axis] > 1;
        }
        elements += numel(shape);
      }
      CHECK(elements == numel(area.shape()));
    }
  }
}

}  // namespace checkpoint_grid_test
