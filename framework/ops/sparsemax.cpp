#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/ops/activation.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Moves an axis last and converts x to the dtype in which it is summed.
at::Tensor axis_last(const at::Tensor& x, int64_t axis) {
  return x.movedim(axis, -1).to(at::toOpMathType(x.scalar_type()));
}

/// The support and threshold of sparsemax along the last axis of x.
struct SparsemaxSupport {
  explicit SparsemaxSupport(const at::Tensor& x) {
    const auto [values, positions] = x.sort(/*stable=*/true, -1, /*descending=*/true);
    const at::Tensor sums = values.cumsum(-1);
    const at::Tensor counts = at::arange(1, x.size(-1) + 1, x.options());
    const at::Tensor support = values.gt(sums.sub(1).div_(counts)).to(x.scalar_type());
    order = positions;
    k = support.sum(-1, /*keepdim=*/true);
    threshold = sums.mul(support).sum(-1, true).sub_(1).div_(k);
    // The sorted x at i is part of the cumulative sums from i to k.
    slope = k.sub(counts).add_(1).mul_(support).div_(k);
  }
  at::Tensor order;      ///< indices that sort x in descending order
  at::Tensor k;          ///< size of the support
  at::Tensor threshold;  ///< t
  at::Tensor slope;      ///< derivative of t with respect to the sorted x
};

/// dx from dy and x. If `transposed`, dy from dx and x: this function's own gradient.
struct SparsemaxGradOp {
  static constexpr std::string_view name = "sparsemax_grad";
  int64_t axis = -1;
  bool transposed = false;
  auto attributes() const { return std::tie(axis, transposed); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const { return unsharded_axis_rule(in, axis); }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor x = axis_last(in[1], axis);
    const SparsemaxSupport support(x);
    const at::Tensor slope = at::empty_like(x).scatter_(-1, support.order, support.slope);
    const at::Tensor dy = axis_last(in[0], axis), is_active = x.ge(support.threshold);
    const at::Tensor active = dy.mul(is_active);
    const at::Tensor dx = transposed ? dy.sub(slope.mul(dy).sum(-1, true)).mul_(is_active)
                                     : active.sub(slope.mul(active.sum(-1, true)));
    return {dx.movedim(-1, axis).to(in[0].scalar_type()).contiguous()};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dx, Needs needs) const {
    // The function is piecewise linear, so its gradient does not depend on x.
    return {run_op(SparsemaxGradOp{axis, !transposed}, {dx[0], saved.in(1)}),
            needs[1] ? saved.in(1) * 0.0 : DTensor()};
  }
  static Samples<SparsemaxGradOp> samples() {
    return {{{{{3, 5}}, {{3, 5}}}, {1}}, {{{{4, 3}}, {{4, 3}}}, {0, true}}};
  }
};

struct SparsemaxOp {
  static constexpr std::string_view name = "sparsemax";
  int64_t axis = -1;
  auto attributes() const { return std::tie(axis); }
  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return unsharded_axis_rule(in, axis); }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor x = axis_last(in[0], axis);
    const at::Tensor y = x.sub(SparsemaxSupport(x).threshold).clamp_min_(0);
    return {y.movedim(-1, axis).to(in[0].scalar_type()).contiguous()};
  }
  static constexpr Saves saves = inputs(0);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {run_op(SparsemaxGradOp{axis}, {dy[0], saved.in(0)})};
  }
  static Samples<SparsemaxOp> samples() {
    return {{{{{3, 5}}}, {1}}, {{{{4, 3}}}, {0}}, {{{{2, 3, 4}}}, {1}}, {{{{3, 1}}}, {1}}};
  }
};

TESSERA_REGISTER_OP(SparsemaxGradOp);
TESSERA_REGISTER_OP(SparsemaxOp);

}  // namespace

namespace ops {

DTensor sparsemax(const DTensor& x, int64_t axis) {
  return run_op(SparsemaxOp{normalize_axis(axis, x.rank(), "sparsemax")}, {x});
}

}  // namespace ops
}  // namespace tessera
