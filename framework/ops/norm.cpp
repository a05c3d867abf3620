#include <tessera/framework/ops/norm.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/l2_normalize.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::ops {

using namespace detail;

namespace {

[[noreturn]] void fail_order(const std::string& order, const std::string& rule) {
  throw ConfigError("norm", rule, order, "choose another order");
}

/// Returns sqrt(sum(x²)).
DTensor root_of_squares(const DTensor& x, const Axes& axes, bool keepdims) {
  return sqrt(sum(square(x), axes, keepdims));
}

DTensor vector_norm(const DTensor& x, double order, const Axes& axes, bool keepdims) {
  if (order == 2) return root_of_squares(x, axes, keepdims);
  const DTensor size = abs(x);
  if (std::isinf(order)) return order > 0 ? max(size, axes, keepdims) : min(size, axes, keepdims);
  if (order == 0) return sum(sign(size), axes, keepdims);
  if (order == 1) return sum(size, axes, keepdims);
  return pow(sum(pow(size, order), axes, keepdims), 1 / order);
}

DTensor matrix_norm(const DTensor& x, double order, const Axes& axes, bool keepdims) {
  const bool columns = std::abs(order) == 1;
  if (!columns && !std::isinf(order)) {
    fail_order(str(order), "a matrix has the norms \"fro\", 1, -1, inf and -inf");
  }
  const DTensor totals = sum(abs(x), {axes[columns ? 0 : 1]}, true);
  const Axes others = {axes[columns ? 1 : 0]};
  const DTensor norms = order > 0 ? max(totals, others, true) : min(totals, others, true);
  return keepdims ? norms : squeeze(norms, axes);
}

DTensor norm_of(const DTensor& x, const NormOrder& order, Axes axes, bool keepdims) {
  const bool plain = !order.number && !order.frobenius;
  if (plain && axes.empty()) return root_of_squares(x, {}, keepdims);
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(x.rank()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) axis = normalize_axis(axis, x.rank(), "norm");
  if (axes.empty() || axes.size() > 2 || (axes.size() == 2 && axes[0] == axes[1])) {
    throw ShapeError("norm", "an order applies to one axis or to two different ones",
                     str(to_string(axes), " of shape ", to_string(x.shape())), "name the axes");
  }
  if (order.frobenius && axes.size() == 1) fail_order("\"fro\"", "a vector's order is a number");
  if (!order.number) return root_of_squares(x, axes, keepdims);
  return axes.size() == 1 ? vector_norm(x, *order.number, axes, keepdims)
                          : matrix_norm(x, *order.number, axes, keepdims);
}

}  // namespace

NormOrder::NormOrder(const char* name) : frobenius(std::string_view(name) == "fro") {
  if (!frobenius) fail_order(in_quotes(name), "the order of a norm is a number or \"fro\"");
}

DTensor norm(const DTensor& x, const NormOrder& order, const Axes& axes, bool keepdims) {
  const DTensor floating = at::isFloatingType(x.dtype()) ? x : cast(x, at::kFloat);
  return cast(norm_of(widened(floating), order, axes, keepdims), floating.dtype());
}

DTensor normalize(const DTensor& x, int64_t axis, int64_t order, double epsilon) {
  check_floating("normalize", {x.shape(), x.dtype()});
  if (order < 1) throw ConfigError("normalize", "order must be at least 1", str(order), "");
  const DTensor wide = widened(x.rank() == 0 ? expand_dims(x, 0) : x);
  const Axes axes = {axis};
  DTensor y;
  if (order == 2) {
    y = l2_normalize(wide, axes, epsilon);
  } else {
    const DTensor size = vector_norm(wide, double(order), axes, true);
    y = wide / clip(size, epsilon, std::numeric_limits<double>::infinity());
  }
  return cast(y, x.dtype());
}

}  // namespace tessera::ops
