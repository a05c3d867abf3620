#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/product_pairs.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns x with its elements one position further along an axis, towards the end (`steps` 1) or
/// the beginning (-1); the free position becomes `value`.
DTensor shifted(const DTensor& x, int64_t axis, int64_t steps, double value) {
  if (x.size(axis) < 2) return filled(x.shape(), value, x.dtype(), fetch_layout(x));
  const DTensor others = ops::slice(x, axis, steps > 0 ? 0 : 1, x.size(axis) - 1);
  return ops::pad(others, axis, steps > 0 ? 1 : 0, steps > 0 ? 0 : 1, value);
}

/// Returns cumulative products, multiplied in axis order on every device.
at::Tensor running_products(const at::Tensor& x, int64_t axis) {
  const bool one_row = x.numel() == x.size(axis);
  if (x.is_cpu() || !one_row || !at::isFloatingType(x.scalar_type())) {
    return x.cumprod(axis, x.scalar_type());
  }
  // With a single row, ATen's GPU kernel rounds differently from run to run; with two it does not.
  return x.reshape({1, -1}).expand({2, -1}).cumprod(1)[0].view(x.sizes());
}

/// s(i) = b(i) + a(i) s(i - 1) along an axis, or s(i + 1) if `reverse`; the first a has no effect.
struct LinearScanOp {
  static constexpr std::string_view name = "linear_scan";
  int64_t axis = 0;
  bool reverse = false;
  auto attributes() const { return std::tie(axis, reverse); }

  Specs infer(const Specs& in) const {
    check_same_dtype(name, in);
    return {in[1]};
  }
  Rule rule(const Specs& in) const { return unsharded_axis_rule(in, axis); }
  /// After each pass s(i) holds twice as many terms, and a(i) is the product of twice as many.
  Tensors forward(const LocalArgs& in) const {
    const at::ScalarType dtype = in[1].scalar_type();
    at::Tensor a = in[0].to(at::toOpMathType(dtype)), s = in[1].to(at::toOpMathType(dtype));
    if (reverse) {
      a = a.flip(axis);
      s = s.flip(axis);
    }
    const int64_t n = s.size(axis);
    for (int64_t step = 1; step < n; step *= 2) {
      const int64_t rest = n - step;
      const at::Tensor sums = s.clone(), products = a.clone();
      sums.narrow(axis, step, rest).add_(a.narrow(axis, step, rest).mul(s.narrow(axis, 0, rest)));
      products.narrow(axis, step, rest).mul_(a.narrow(axis, 0, rest));
      s = sums;
      a = products;
    }
    return {(reverse ? s.flip(axis) : s).to(dtype)};
  }
  static constexpr Saves saves = {inputs(0).in, outputs(0).out};
  Grads gradient(const Saved& saved, const Cotangents& ds, Needs needs) const {
    const int64_t back = reverse ? 1 : -1;
    Grads grads(2);
    const DTensor a = shifted(saved.in(0), axis, back, 0);
    grads[1] = run_op(LinearScanOp{axis, !reverse}, {a, ds[0]});
    if (needs[0]) grads[0] = grads[1] * shifted(saved.out(), axis, -back, 0);
    return grads;
  }
  static Samples<LinearScanOp> samples() {
    return {{{{{3, 5}}, {{3, 5}}}, {1, false}},
            {{{{7, 2}}, {{7, 2}}}, {0, true}},
            {{{{2, 3, 2}}, {{2, 3, 2}}}, {1, true}}};
  }
};

struct CumprodOp {
  static constexpr std::string_view name = "cumprod";
  int64_t axis = 0;
  auto attributes() const { return std::tie(axis); }

  Specs infer(const Specs& in) const {
    check_not_bool(name, in[0]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return unsharded_axis_rule(in, axis); }
  Tensors forward(const LocalArgs& in) const {
    const at::ScalarType dtype = in[0].scalar_type();
    return {running_products(in[0].to(at::toOpMathType(dtype)), axis).to(dtype)};
  }
  static constexpr Saves saves = {inputs(0).in, outputs(0).out};
  /// The product of the elements before i, times dy(i) + x(i + 1) dy(i + 1) + x(i + 1) x(i + 2)
  /// dy(i + 2) + …; divides by nothing, and is correct where elements are 0.
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    const DTensor next = shifted(saved.in(0), axis, -1, 0);
    const DTensor after = run_op(LinearScanOp{axis, /*reverse=*/true}, {next, dy[0]});
    return {shifted(saved.out(), axis, 1, 1) * after};
  }
  static Samples<CumprodOp> samples() {
    return {{{{{3, 5}}}, {1}},
            {{{{7, 2}}}, {0}},
            {{{{2, 3, 2}}}, {1}},
            {{{{5}}}, {0}},
            {{{{3, 4}, at::kInt, -3, 3}}, {1}}};
  }
};

TESSERA_REGISTER_OP(LinearScanOp);
TESSERA_REGISTER_OP(CumprodOp);

}  // namespace

DTensor detail::products_without_pairs(const DTensor& x, const DTensor& g, int64_t axis) {
  const DTensor from_end = run_op(CumprodOp{axis}, {ops::flip(x, {axis})});
  // The products of the elements before and after j, and what these are without one element i.
  const DTensor before = shifted(run_op(CumprodOp{axis}, {x}), axis, 1, 1);
  const DTensor after = shifted(ops::flip(from_end, {axis}), axis, -1, 1);
  const DTensor sums_before = run_op(LinearScanOp{axis, /*reverse=*/false}, {x, g * before});
  const DTensor sums_after = run_op(LinearScanOp{axis, /*reverse=*/true}, {x, g * after});
  return shifted(sums_before, axis, 1, 0) * after + before * shifted(sums_after, axis, -1, 0);
}

namespace ops {

DTensor cumprod(const DTensor& x, int64_t axis) {
  const int64_t a = normalize_axis(axis, x.rank(), "cumprod");
  return run_op(CumprodOp{a}, {x.dtype() == at::kBool ? cast(x, at::kInt) : x});
}

}  // namespace ops
}  // namespace tessera
