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
  /// Extents; those of a rectangle that lies inside a tensor.
  Shape shape() const;
  bool operator==(const Rectangle&) const = default;
};

/// Whether a rectangle lies inside a tensor; it may be empty.
bool lies_inside(const Rectangle& area, const Shape& shape);

/// The intervals that each axis of a tensor is cut into, in order and without a gap.
using Grid = std::vector<std::vector<Interval>>;

/// The grid whose cells are these rectangles, which lie inside the tensor and are not empty.
/// Returns what is wrong, in words, where they do not cover the tensor once or form no grid.
std::string find_grid(const Shape& shape, std::vector<Rectangle> areas, Grid& grid);

/// The grid with every cell cut to at most `max_elements` >= 1 elements, along the outermost axes:
/// a cell of the result is contiguous in the row-major cell it was part of.
Grid cut_grid(Grid grid, uint64_t max_elements);

/// The cells of a grid that make up `area`, in row-major order.
std::vector<Rectangle> cells_of(const Grid& grid, const Rectangle& area);

}  // namespace tessera::detail
