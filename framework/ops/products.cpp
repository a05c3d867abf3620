#include <algorithm>

#include <tessera/framework/base/error.hpp>
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

}  // namespace tessera::ops
