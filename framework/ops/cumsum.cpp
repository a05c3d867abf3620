#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns cumulative sums, accumulated in axis order on every device.
at::Tensor running_sums(const at::Tensor& x, int64_t axis) {
  const bool one_row = x.numel() == x.size(axis);
  if (x.is_cpu() || !one_row || !at::isFloatingType(x.scalar_type())) {
    return x.cumsum(axis, x.scalar_type());
  }
  // With a single row, ATen's GPU kernel rounds differently from run to run; with two it does not.
  return x.reshape({1, -1}).expand({2, -1}).cumsum(1)[0].view(x.sizes());
}

struct CumsumOp {
  static constexpr std::string_view name = "cumsum";
  int64_t axis = 0;
  bool exclusive = false, reverse = false;
  auto attributes() const { return std::tie(axis, exclusive, reverse); }

  Specs infer(const Specs& in) const {
    check_not_bool(name, in[0]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return unsharded_axis_rule(in, axis).passing(Passes::sums); }
  Tensors forward(const LocalArgs& in) const {
    const at::ScalarType dtype = in[0].scalar_type();
    at::Tensor x = in[0].to(at::toOpMathType(dtype));
    if (reverse) x = x.flip(axis);
    at::Tensor sums;
    if (exclusive) {
      // Inclusive sums minus x would not be exact.
      const int64_t others = x.size(axis) - 1;
      sums = at::zeros_like(x);
      if (others > 0) {
        sums.narrow(axis, 1, others).copy_(running_sums(x.narrow(axis, 0, others), axis));
      }
    } else {
      sums = running_sums(x, axis);
    }
    if (reverse) sums = sums.flip(axis);
    return {sums.to(dtype)};
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const {
    return {run_op(CumsumOp{axis, exclusive, !reverse}, {dy[0]})};
  }
  static Samples<CumsumOp> samples() {
    return {{{{{3, 4}}}, {1, false, false}},
            {{{{4, 3}}}, {0, true, false}},
            {{{{2, 3, 2}}}, {1, false, true}},
            {{{{5}}}, {0, true, true}},
            {{{{3, 4}, at::kInt, -5, 5}}, {1, false, false}}};
  }
};

TESSERA_REGISTER_OP(CumsumOp);

}  // namespace

namespace ops {

DTensor cumsum(const DTensor& x, int64_t axis, bool exclusive, bool reverse) {
  const int64_t a = normalize_axis(axis, x.rank(), "cumsum");
  return run_op(CumsumOp{a, exclusive, reverse}, {x.dtype() == at::kBool ? cast(x, at::kInt) : x});
}

}  // namespace ops
}  // namespace tessera
