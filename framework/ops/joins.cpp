#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::ops {

using namespace detail;

namespace {

/// Adds axes of extent 1 where NumPy does: a vector becomes a row, a matrix gets axes at the end.
DTensor with_rank(DTensor x, int64_t rank) {
  if (x.rank() == 0) x = expand_dims(x, 0);
  if (x.rank() == 1 && rank > 1) x = expand_dims(x, 0);
  while (x.rank() < rank) x = expand_dims(x, x.rank());
  return x;
}

DTensor joined_along(int64_t axis, const std::vector<DTensor>& tensors, int64_t rank) {
  std::vector<DTensor> all;
  for (const DTensor& x : tensors) all.push_back(with_rank(x, rank));
  return concat(all, axis);
}

int64_t horizontal_axis(const DTensor& x) { return x.rank() == 1 ? 0 : 1; }

}  // namespace

DTensor hstack(const std::vector<DTensor>& tensors) {
  return joined_along(tensors.empty() || tensors[0].rank() < 2 ? 0 : 1, tensors, 1);
}

DTensor vstack(const std::vector<DTensor>& tensors) { return joined_along(0, tensors, 2); }
DTensor dstack(const std::vector<DTensor>& tensors) { return joined_along(2, tensors, 3); }

DTensor append(const DTensor& a, const DTensor& b, std::optional<int64_t> axis) {
  return axis ? concat({a, b}, *axis) : concat({ravel(a), ravel(b)}, 0);
}

std::vector<DTensor> array_split(const DTensor& x, int64_t sections, int64_t axis) {
  const int64_t a = normalize_axis(axis, x.rank(), "array_split");
  if (sections < 1) {
    throw ShapeError("array_split", "sections must be at least 1", str(sections), "");
  }
  const int64_t size = x.size(a) / sections, longer = x.size(a) % sections;
  std::vector<DTensor> parts;
  int64_t begin = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t own = i < longer ? size + 1 : size;
    parts.push_back(slice(x, a, begin, own));
    begin += own;
  }
  return parts;
}

std::vector<DTensor> array_split(const DTensor& x, const std::vector<int64_t>& indices,
                                 int64_t axis) {
  const int64_t a = normalize_axis(axis, x.rank(), "array_split"), extent = x.size(a);
  std::vector<int64_t> borders = {0};
  for (const int64_t index : indices) {
    borders.push_back(std::clamp<int64_t>(index < 0 ? index + extent : index, 0, extent));
  }
  borders.push_back(extent);
  std::vector<DTensor> parts;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    parts.push_back(slice(x, a, borders[i], std::max<int64_t>(borders[i + 1] - borders[i], 0)));
  }
  return parts;
}

std::vector<DTensor> hsplit(const DTensor& x, int64_t sections) {
  return split(x, sections, horizontal_axis(x));
}
std::vector<DTensor> hsplit(const DTensor& x, const std::vector<int64_t>& indices) {
  return array_split(x, indices, horizontal_axis(x));
}
std::vector<DTensor> vsplit(const DTensor& x, int64_t sections) { return split(x, sections, 0); }
std::vector<DTensor> vsplit(const DTensor& x, const std::vector<int64_t>& indices) {
  return array_split(x, indices, 0);
}
std::vector<DTensor> dsplit(const DTensor& x, int64_t sections) { return split(x, sections, 2); }
std::vector<DTensor> dsplit(const DTensor& x, const std::vector<int64_t>& indices) {
  return array_split(x, indices, 2);
}

std::vector<DTensor> meshgrid(const std::vector<DTensor>& vectors, const std::string& indexing) {
  if (indexing != "xy" && indexing != "ij") {
    throw ConfigError("meshgrid", R"(indexing is "xy" or "ij")", in_quotes(indexing),
                      "choose one of them");
  }
  const size_t rank = vectors.size();
  const bool exchanged = indexing == "xy" && rank > 1;
  const auto axis_of = [exchanged](size_t i) { return exchanged && i < 2 ? 1 - i : i; };
  Shape grid(rank, 1);
  for (size_t i = 0; i < rank; ++i) grid[axis_of(i)] = vectors[i].numel();
  std::vector<DTensor> coordinates;
  for (size_t i = 0; i < rank; ++i) {
    Shape own(rank, 1);
    own[axis_of(i)] = vectors[i].numel();
    coordinates.push_back(broadcast_to(reshape(vectors[i], own), grid));
  }
  return coordinates;
}

}  // namespace tessera::ops
