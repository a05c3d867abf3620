#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/scatter.hpp>
#include <tessera/framework/ops/segment.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::ops {

using namespace detail;

DTensor bincount(const DTensor& x, int64_t length, const DTensor& weights) {
  if (x.rank() != 1 && x.rank() != 2) {
    throw ShapeError("bincount", "x has one or two axes", to_string(x.shape()),
                     "flatten it, or its last axes");
  }
  const DTensor counted =
      weights.defined() ? weights : filled(x.shape(), 1, at::kInt, fetch_layout(x));
  const DTensor column = expand_dims(x, -1);
  if (x.rank() == 1) return scatter(column, counted, {length});
  const int64_t rows = x.size(0);
  const at::Tensor row_numbers = at::arange(rows, at::TensorOptions().dtype(at::kLong));
  const DTensor of_rows = broadcast_to(
      reshape(pack(row_numbers, Layout::replicated(x.mesh(), 1)), {rows, 1, 1}), column.shape());
  return scatter(concat({cast(of_rows, x.dtype()), column}, -1), counted, {rows, length});
}

std::pair<DTensor, DTensor> histogram(const DTensor& x, int64_t bins, const HistogramRange& range) {
  check_floating("histogram", {x.shape(), x.dtype()});
  if (bins < 1) {
    throw ConfigError("histogram", "bins must be at least 1", str(bins), "pass a larger number");
  }
  const DTensor values = stop_gradient(reshape(x, {-1}));
  const DTensor lo = range ? scalar(range->first, x.mesh(), x.dtype()) : min(values);
  const DTensor hi = range ? scalar(range->second, x.mesh(), x.dtype()) : max(values);
  const at::Tensor shares = at::arange(bins + 1, at::kDouble).div(double(bins)).to(x.dtype());
  const DTensor edges = lo + (hi - lo) * pack(shares, Layout::replicated(x.mesh(), 1));
  const DTensor inside =
      cast(logical_and(greater_equal(values, lo), less_equal(values, hi)), x.dtype());
  const DTensor bin = bins == 1 ? filled(values.shape(), 0, at::kLong, fetch_layout(values))
                                : searchsorted(slice(edges, 0, 1, bins - 1), values, true);
  return {segment_sum(inside, bin, bins), edges};
}

}  // namespace tessera::ops
