#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/constants.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::ops {

using namespace detail;

namespace {

using AxisList = std::vector<int64_t>;

char letter(size_t i) { return char(i < 26 ? 'a' + int(i) : 'A' + int(i) - 26); }

/// Sums the products over pairs of axes, as one einsum.
DTensor contracted(const std::string& where, const DTensor& a, const AxisList& axes_a,
                   const DTensor& b, const AxisList& axes_b) {
  const auto fail = [&](const std::string& rule) {
    throw ShapeError(where, rule, to_string(a.shape()) + " and " + to_string(b.shape()),
                     "name axes of equal extents");
  };
  if (axes_a.size() != axes_b.size()) fail("as many axes of one tensor as of the other");
  if (a.rank() + b.rank() > 52) fail("at most 52 axes");
  std::string left, right, out;
  for (int64_t i = 0; i < a.rank() + b.rank(); ++i) {
    (i < a.rank() ? left : right) += letter(size_t(i));
  }
  std::string free_a = left, free_b = right;
  for (size_t i = 0; i < axes_a.size(); ++i) {
    const auto x = size_t(normalize_axis(axes_a[i], a.rank(), where));
    const auto y = size_t(normalize_axis(axes_b[i], b.rank(), where));
    if (a.shape()[x] != b.shape()[y]) fail("axes that are summed have one extent");
    if (free_a[x] == ' ' || free_b[y] == ' ') fail("each axis is named once");
    right[y] = left[x];
    free_a[x] = free_b[y] = ' ';
  }
  out = free_a + free_b;
  out.erase(std::remove(out.begin(), out.end(), ' '), out.end());
  return einsum(left + "," + right + "->" + out, {a, b});
}

bool has_scalar(const DTensor& a, const DTensor& b) { return a.rank() == 0 || b.rank() == 0; }

}  // namespace

DTensor dot(const DTensor& a, const DTensor& b) {
  if (has_scalar(a, b)) return mul(a, b);
  return contracted("dot", a, {-1}, b, {b.rank() == 1 ? 0 : -2});
}

DTensor inner(const DTensor& a, const DTensor& b) {
  return has_scalar(a, b) ? mul(a, b) : contracted("inner", a, {-1}, b, {-1});
}

DTensor vdot(const DTensor& a, const DTensor& b) {
  return contracted("vdot", ravel(a), {0}, ravel(b), {0});
}

DTensor outer(const DTensor& a, const DTensor& b) {
  return contracted("outer", ravel(a), {}, ravel(b), {});
}

DTensor tensordot(const DTensor& a, const DTensor& b, int64_t axes) {
  if (axes < 0 || axes > std::min(a.rank(), b.rank())) {
    throw ShapeError("tensordot", str("axes must be in [0, ", std::min(a.rank(), b.rank()), "]"),
                     str(axes), "");
  }
  AxisList last, first;
  for (int64_t i = 0; i < axes; ++i) {
    last.push_back(a.rank() - axes + i);
    first.push_back(i);
  }
  return tensordot(a, b, last, first);
}

DTensor tensordot(const DTensor& a, const DTensor& b, const AxisList& axes_a,
                  const AxisList& axes_b) {
  if (axes_a.empty() && axes_b.empty() && has_scalar(a, b)) return mul(a, b);
  return contracted("tensordot", a, axes_a, b, axes_b);
}

DTensor cross(const DTensor& a, const DTensor& b, int64_t axis) {
  const int64_t x = normalize_axis(axis, a.rank(), "cross");
  const int64_t y = normalize_axis(axis, b.rank(), "cross");
  if (a.size(x) != 3 || b.size(y) != 3) {
    throw ShapeError("cross", "the axis has three elements",
                     to_string(a.shape()) + " and " + to_string(b.shape()), "name another axis");
  }
  return roll(a, {-1}, {x}) * roll(b, {1}, {y}) - roll(a, {1}, {x}) * roll(b, {-1}, {y});
}

DTensor kron(const DTensor& a, const DTensor& b) {
  const int64_t rank = std::max(a.rank(), b.rank());
  const auto extent = [rank](const DTensor& x, int64_t axis) {
    const int64_t own = axis - (rank - x.rank());
    return own < 0 ? int64_t(1) : x.size(own);
  };
  Shape left, right, shape;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t m = extent(a, axis), n = extent(b, axis);
    left.insert(left.end(), {m, 1});
    right.insert(right.end(), {1, n});
    shape.push_back(m * n);
  }
  return reshape(mul(reshape(a, left), reshape(b, right)), shape);
}

DTensor vander(const DTensor& x, std::optional<int64_t> n, bool increasing) {
  if (x.rank() != 1 || n.value_or(1) < 1) {
    throw ShapeError("vander", "x is a vector and n at least 1",
                     str(to_string(x.shape()), ", n = ", n.value_or(1)), "pass a vector");
  }
  // Products, as the gradient of pow() at 0 with exponent 0 is NaN.
  std::vector<DTensor> powers = {ones_like(x)};
  const int64_t count = n.value_or(x.size(0));
  while (int64_t(powers.size()) < count) powers.push_back(powers.back() * x);
  if (!increasing) std::reverse(powers.begin(), powers.end());
  return stack(powers, 1);
}

}  // namespace tessera::ops
