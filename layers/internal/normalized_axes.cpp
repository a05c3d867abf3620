#include <tessera/layers/internal/normalized_axes.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

std::vector<int64_t> normalized_axes(const std::string& where, const std::vector<int64_t>& axes,
                                     const Shape& input) {
  std::vector<int64_t> list;
  for (const int64_t axis : axes) {
    list.push_back(normalize_axis(axis, static_cast<int64_t>(input.size()), where));
    if (input[static_cast<size_t>(list.back())] >= 0) continue;
    throw ShapeError(where, str("axis ", axis, " has a known extent"), to_string(input),
                     "normalize over another, or give its extent");
  }
  std::sort(list.begin(), list.end());
  if (std::adjacent_find(list.begin(), list.end()) == list.end()) return list;
  throw ShapeError(where, "axis names each axis once", to_string(axes), "leave out the second");
}

Shape broadcastable_shape(const Shape& input, const std::vector<int64_t>& axes) {
  Shape shape(input.size(), 1);
  for (const int64_t axis : axes) {
    shape[static_cast<size_t>(axis)] = input[static_cast<size_t>(axis)];
  }
  return shape;
}

Shape extents_of(const Shape& input, const std::vector<int64_t>& axes) {
  Shape shape;
  for (const int64_t axis : axes) shape.push_back(input[static_cast<size_t>(axis)]);
  return shape;
}

void check_as_built(const std::string& where, const Shape& extents, const Shape& built) {
  if (extents == built) return;
  throw ShapeError(where,
                   "the normalized axes have extents " + to_string(built) + ", as when built",
                   to_string(extents), "pass inputs of that size");
}

}  // namespace tessera::detail
