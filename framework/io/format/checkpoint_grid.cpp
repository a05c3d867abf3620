#include <tessera/framework/io/format/checkpoint_grid.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>

namespace tessera::detail {
namespace {

std::string text_of(const std::vector<Interval>& intervals) {
  std::string text;
  for (const Interval& interval : intervals) {
    if (text.size() > 80) return text + ", ...";
    text += str(text.empty() ? "" : ", ", "[", interval.lo, ", ", interval.hi, ")");
  }
  return text;
}

/// Returns the distinct intervals of the rectangles along an axis, ascending.
std::vector<Interval> intervals_along(size_t axis, const std::vector<Rectangle>& areas) {
  std::vector<Interval> intervals;
  for (const Rectangle& area : areas) intervals.push_back({area.begin[axis], area.end[axis]});
  std::sort(intervals.begin(), intervals.end(),
            [](Interval a, Interval b) { return std::pair(a.lo, a.hi) < std::pair(b.lo, b.hi); });
  intervals.erase(std::unique(intervals.begin(), intervals.end()), intervals.end());
  return intervals;
}

bool covers(const std::vector<Interval>& intervals, int64_t extent) {
  int64_t end = 0;
  for (const Interval& interval : intervals) {
    if (interval.lo != end) return false;
    end = interval.hi;
  }
  return end == extent;
}

int64_t widest(const std::vector<Interval>& intervals) {
  int64_t size = 1;
  for (const Interval& interval : intervals) size = std::max(size, interval.size());
  return size;
}

}  // namespace

Shape Rectangle::shape() const {
  Shape extents;
  for (size_t axis = 0; axis < begin.size(); ++axis) extents.push_back(size(axis));
  return extents;
}

bool is_inside(const Rectangle& area, const Shape& shape) {
  if (area.begin.size() != shape.size() || area.end.size() != shape.size()) return false;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (area.begin[axis] < 0 || area.end[axis] < area.begin[axis]) return false;
    if (area.end[axis] > shape[axis]) return false;
  }
  return true;
}

std::string find_grid(const Shape& shape, std::vector<Rectangle> areas, Grid& grid) {
  if (areas.empty()) {
    const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    return empty ? "" : "no piece";
  }
  grid.clear();
  uint64_t cells = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    grid.push_back(intervals_along(axis, areas));
    if (!covers(grid.back(), shape[axis])) {
      return str(text_of(grid.back()), " along axis ", axis);
    }
    cells = checked_mul(cells, grid.back().size()).value_or(UINT64_MAX);
  }
  if (cells != areas.size()) return str(areas.size(), " pieces for a grid of ", cells);
  // Along each axis a begin identifies one interval now, so different begins are different cells.
  std::sort(areas.begin(), areas.end(),
            [](const Rectangle& a, const Rectangle& b) { return a.begin < b.begin; });
  const auto twice = std::adjacent_find(areas.begin(), areas.end());
  return twice == areas.end() ? "" : str("twice the piece at ", to_string(twice->begin));
}

Grid split_grid(Grid grid, uint64_t max_elements) {
  for (size_t axis = 0; axis < grid.size(); ++axis) {
    uint64_t inner = 1;
    for (size_t i = axis + 1; i < grid.size(); ++i) inner *= static_cast<uint64_t>(widest(grid[i]));
    const auto limit = static_cast<int64_t>(
        std::clamp<uint64_t>(max_elements / inner, 1, static_cast<uint64_t>(widest(grid[axis]))));
    std::vector<Interval> intervals;
    for (const Interval& interval : grid[axis]) {
      for (int64_t lo = interval.lo; lo < interval.hi; lo += limit) {
        intervals.push_back({lo, std::min(lo + limit, interval.hi)});
      }
    }
    grid[axis] = std::move(intervals);
    if (inner <= max_elements) break;
  }
  return grid;
}

std::vector<Rectangle> cells_of(const Grid& grid, const Rectangle& area) {
  std::vector<Rectangle> cells{{}};
  for (size_t axis = 0; axis < grid.size(); ++axis) {
    std::vector<Rectangle> longer;
    for (const Rectangle& cell : cells) {
      for (const Interval& interval : grid[axis]) {
        if (interval.lo < area.begin[axis] || interval.hi > area.end[axis]) continue;
        longer.push_back(cell);
        longer.back().begin.push_back(interval.lo);
        longer.back().end.push_back(interval.hi);
      }
    }
    cells = std::move(longer);
  }
  return cells;
}

}  // namespace tessera::detail
