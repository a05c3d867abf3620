#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/indexing.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::ops {

using namespace detail;

DTensor diag(const DTensor& x, int64_t k) {
  if (x.rank() == 2) return diagonal(x, k);
  if (x.rank() != 1) {
    throw ShapeError("diag", "x must have one or two axes", to_string(x.shape()),
                     "use diagonal() for others");
  }
  const int64_t extent = x.size(0) + (k < 0 ? -k : k);
  const DTensor row = pad(x, 0, std::max<int64_t>(k, 0), std::max<int64_t>(-k, 0));
  return triu(tril(broadcast_to(row, {extent, extent}), k), k);
}

DTensor diagflat(const DTensor& x, int64_t k) { return diag(ravel(x), k); }

DTensor diagonal(const DTensor& x, int64_t offset, int64_t axis1, int64_t axis2) {
  const int64_t a = normalize_axis(axis1, x.rank(), "diagonal");
  const int64_t b = normalize_axis(axis2, x.rank(), "diagonal");
  if (a == b) {
    throw ShapeError("diagonal", "the axes must differ", str(axis1, " and ", axis2), "");
  }
  const DTensor matrices = moveaxis(x, {a, b}, {-2, -1});
  const int64_t rows = matrices.size(-2), columns = matrices.size(-1);
  const int64_t top = std::clamp<int64_t>(-offset, 0, rows);
  const int64_t left = std::clamp<int64_t>(offset, 0, columns);
  const int64_t length = std::min(rows - top, columns - left);
  Shape column(matrices.shape().size(), 1);
  column[column.size() - 2] = length;
  const DTensor indices = reshape(index_range(left, length, 1, x.mesh()), column);
  return squeeze(take_along_axis(slice(matrices, -2, top, length), indices, -1), {-1});
}

DTensor trace(const DTensor& x, int64_t offset, int64_t axis1, int64_t axis2) {
  return sum(diagonal(x, offset, axis1, axis2), {-1});
}

}  // namespace tessera::ops
