#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// The elements [begin, end) of a tensor, one pair per axis.
struct Rectangle {
  Shape begin;
  Shape end;

  int64_t size(size_t axis) const { return end[axis] - begin[axis]; }
  /// Returns the extents.
  Shape shape() const;
  bool operator==(const Rectangle&) const = default;
};

/// Returns whether a rectangle, possibly empty, is inside a tensor of this shape.
bool is_inside(const Rectangle& area, const Shape& shape);

/// The intervals that each axis of a tensor is split into, ascending and without gaps.
using Grid = std::vector<std::vector<Interval>>;

/// Finds the grid whose cells are `areas`, non-empty rectangles inside the tensor. Returns a
/// description of the problem if they do not cover the tensor exactly once or form no grid, and an
/// empty text otherwise.
std::string find_grid(const Shape& shape, std::vector<Rectangle> areas, Grid& grid);

/// Returns the grid with each cell split to at most `max_elements` >= 1 elements, along the
/// outermost axes: each new cell is contiguous in the row-major cell that it was part of.
Grid split_grid(Grid grid, uint64_t max_elements);

/// Returns the cells of a grid inside `area`, in row-major order.
std::vector<Rectangle> cells_of(const Grid& grid, const Rectangle& area);

}  // namespace tessera::detail
