#include <tessera/framework/ops/window_axis.hpp>

#include <algorithm>

namespace tessera::ops {
namespace {

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

}  // namespace

int64_t WindowAxis::outputs(int64_t input) const {
  const int64_t room = input + before + after - reach();
  return room < 0 ? 0 : room / stride + 1;
}

Interval WindowAxis::reads(Interval out) const {
  if (out.empty()) return {};
  return {out.lo * stride - before, (out.hi - 1) * stride - before + reach()};
}

Interval WindowAxis::readers(Interval in, int64_t outputs) const {
  if (in.empty()) return {};
  const int64_t lo = floor_div(in.lo + before - reach(), stride) + 1;
  const int64_t hi = floor_div(in.hi - 1 + before, stride) + 1;
  return detail::intersect({lo, std::max(lo, hi)}, {0, outputs});
}

}  // namespace tessera::ops
