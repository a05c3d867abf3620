#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/norm_axes.hpp>
#include <tessera/framework/ops/internal/normalize.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::detail {

namespace {

/// x -> the sums of x and x², (2, …).
struct NormSumsOp : NormAxes {
  static constexpr std::string_view name = "norm_sums";
  auto attributes() const { return std::tie(reduced, weighted); }
  Specs infer(const Specs& in) const {
    check_norm_axes(name, *this, in);
    return {{moments_shape(in[0].shape), at::kDouble}};
  }
  Rule rule(const Specs& in) const { return Rule::parse(rows(in[0]) + " ->" + moments(in[0])); }
  Tensors forward(const LocalArgs& in) const {
    return {moments_view(norm_sums(block_of(in[0])), in[0])};
  }
  static constexpr Saves saves = inputs(0);
  Grads gradient(const Saved& saved, const Cotangents& sums, Needs) const {
    const std::vector<DTensor> each = ops::unstack(sums[0]);
    return {ops::cast(each[0] + ops::cast(saved.in(0), at::kDouble) * each[1] * 2,
                      saved.in(0).dtype())};
  }
  static Samples<NormSumsOp> samples();
};

/// Sums of NormSumsOp -> mean and variance, or 0 and the mean of the squares.
struct NormMomentsOp {
  static constexpr std::string_view name = "norm_moments";
  double count = 1;
  bool centered = true;
  auto attributes() const { return std::tie(count, centered); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const {
    std::string axes;
    for (int64_t a = 1; a < in[0].rank(); ++a) axes += str(" a", a);
    return Rule::parse("." + axes + " -> ." + axes);
  }
  Tensors forward(const LocalArgs& in) const {
    at::Tensor moments = in[0] / count;
    at::Tensor mean = moments[0], variance = moments[1];
    if (centered) {
      variance.sub_(mean * mean).clamp_min_(0);
    } else {
      mean.zero_();
    }
    return {moments};
  }
  static constexpr Saves saves = outputs(0);
  Grads gradient(const Saved& saved, const Cotangents& moments, Needs) const {
    const std::vector<DTensor> each = ops::unstack(moments[0]);
    const DTensor of_squares = each[1] / count;
    if (!centered) return {ops::stack({ops::scale(of_squares, 0), of_squares})};
    const DTensor mean = ops::unstack(saved.out())[0];
    return {ops::stack({each[0] / count - mean * of_squares * 2, of_squares})};
  }
  static Samples<NormMomentsOp> samples();
};

Samples<NormSumsOp> NormSumsOp::samples() {
  Samples<NormSumsOp> all;
  for (const NormCase& c : norm_cases()) {
    if (c.activation == FusedActivation::none) all.push_back({{{c.x}}, {c.norm}});
  }
  return all;
}

Samples<NormMomentsOp> NormMomentsOp::samples() {
  return {{{{{2, 1, 3}, at::kDouble, 0.5, 1}}, {1.5, true}},
          {{{{2, 2, 1}, at::kDouble, 0.5, 1}}, {4, false}}};
}

TESSERA_REGISTER_OP(NormSumsOp);
TESSERA_REGISTER_OP(NormMomentsOp);

}  // namespace

DTensor norm_moments(const DTensor& x, const Shape& weights, const ops::Axes& axes, bool centered) {
  const NormAxes norm = norm_axes_of(x.shape(), weights, axes).value();
  return run_op(NormMomentsOp{norm.count(x.shape()), centered}, {run_op(NormSumsOp{norm}, {x})});
}

}  // namespace tessera::detail
