#include <tessera/framework/ops/internal/normalize.hpp>

#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/op_plan.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/norm_axes.hpp>
#include <tessera/framework/ops/internal/norm_kernels.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera::detail {

namespace {

/// Makes factors that an output lacks reduced ones, which leave partial sums.
Rule reducing_rule(const std::string& text) {
  Rule rule = Rule::parse(text);
  for (FactorKind& kind : rule.factors) {
    if (kind == FactorKind::pass) kind = FactorKind::reduce;
  }
  return rule;
}

DTensor wide(const DTensor& x) { return ops::cast(x, at::kDouble); }

struct NormGradientOp;
struct NormGradientSumsOp;

/// Returns dy where an activation whose result is y let it pass, else 0.
DTensor passed(FusedActivation activation, const DTensor& dy, const DTensor& y) {
  if (activation == FusedActivation::none) return dy;
  const DTensor open = ops::cast(y > 0, dy.dtype());
  if (activation == FusedActivation::relu) return dy * open;
  return dy * open * ops::cast(y < 6, dy.dtype());
}

/// x, moments, scale, offset -> activation((x - mean) / sqrt(variance + epsilon) · scale + offset).
struct NormByOp : NormAxes {
  static constexpr std::string_view name = "norm_by";
  NormOptions options;
  FusedActivation activation = FusedActivation::none;
  auto attributes() const {
    return std::tie(reduced, weighted, options.epsilon, options.own_moments, options.centered,
                    activation);
  }
  Specs infer(const Specs& in) const {
    check_norm_axes(name, *this, in);
    return {in[0]};
  }
  Rule rule(const Specs& in) const {
    const Spec& x = in[0];
    return Rule::parse(rows(x) + " ," + moments(x) + " ," + weight(x) + " ," + weight(x) + " ->" +
                       rows(x));
  }
  Tensors forward(const LocalArgs& in) const {
    NormBlock block = block_of(in[0], in[1], in[2], options.epsilon);
    block.activation = activation;
    const at::Tensor offset = in[3].to(block.mean.scalar_type()).contiguous();
    return {norm_apply(block, offset).to(in[0].scalar_type())};
  }
  static constexpr Saves saves = inputs(0, 1, 2, 3);
  Grads gradient(const Saved& saved, const Cotangents& cotangents, Needs needs) const;
  static Samples<NormByOp> samples();
};

/// dy, x, moments, if an axis is reduced and weighted scale, and with an activation its result y;
/// dy is 0 where the activation did not let it pass. With h = (x - mean) / sqrt(variance + epsilon)
/// and a scale -> the sums of dy · scale and dy · scale · h for each moment, (2, …), and those of
/// dy and dy · h for each weight, (2, …). Without one -> the sums of dy and dy · h for each moment,
/// (2, …), of which both follow, so that one all-reduce is enough.
struct NormGradientSumsOp : NormAxes {
  static constexpr std::string_view name = "norm_gradient_sums";
  double epsilon = 1e-3;
  FusedActivation activation = FusedActivation::none;
  auto attributes() const { return std::tie(reduced, weighted, epsilon, activation); }
  bool activates() const { return activation != FusedActivation::none; }
  size_t y_at() const { return has_features() ? 4 : 3; }
  Specs infer(const Specs& in) const {
    Specs out = {{moments_shape(in[1].shape), at::kDouble}};
    if (has_features()) out.push_back({pairs_of(in[3].shape), at::kDouble});
    return out;
  }
  Rule rule(const Specs& in) const {
    const Spec& x = in[1];
    std::string in_terms = rows(x) + " ," + rows(x) + " ," + moments(x);
    if (has_features()) in_terms += " ," + weight(x);
    if (activates()) in_terms += " ," + rows(x);
    const std::string by_weight = has_features() ? " , ." + weight(x) : "";
    return reducing_rule(in_terms + " ->" + moments(x) + by_weight);
  }
  Tensors forward(const LocalArgs& in) const {
    NormBlock block = block_of(in[1], in[2], has_features() ? in[3] : at::Tensor(), epsilon);
    block.activation = activation;
    if (activates()) block.y = dense(in[y_at()]);
    const auto [sums, by_weight] = norm_gradient_sums(block, dense(in[0]), has_features());
    Tensors out = {moments_view(sums, in[1])};
    if (has_features()) out.push_back(by_weight.view(pairs_of(in[3].sizes().vec())));
    return out;
  }
  static constexpr Saves saves = inputs(0, 1, 2, 3, 4);
  Grads gradient(const Saved& saved, const Cotangents& cotangents, Needs) const;
  static Samples<NormGradientSumsOp> samples();
};

/// dy, x, moments, scale, for each moment the sums of dy · scale and dy · scale · h, and with an
/// activation its result -> the gradient of x, to which its moments contribute.
struct NormGradientOp : NormAxes {
  static constexpr std::string_view name = "norm_gradient";
  double epsilon = 1e-3;
  bool centered = true;
  FusedActivation activation = FusedActivation::none;
  auto attributes() const { return std::tie(reduced, weighted, epsilon, centered, activation); }
  bool activates() const { return activation != FusedActivation::none; }
  Specs infer(const Specs& in) const { return {in[1]}; }
  Rule rule(const Specs& in) const {
    const Spec& x = in[1];
    return Rule::parse(rows(x) + " ," + rows(x) + " ," + moments(x) + " ," + weight(x) + " ," +
                       moments(x) + (activates() ? " ," + rows(x) : "") + " ->" + rows(x));
  }
  Tensors forward(const LocalArgs& in) const {
    NormBlock block = block_of(in[1], in[2], in[3], epsilon);
    block.activation = activation;
    if (activates()) block.y = dense(in[5]);
    const at::Tensor means =
        (in[4].to(at::kDouble) / count(in.spec(1).shape)).to(block.mean.scalar_type());
    const at::Tensor first = centered ? means[0] : at::zeros_like(means[0]);
    const at::Tensor dx =
        norm_gradient(block, dense(in[0]), first.contiguous(), means[1].contiguous());
    return {dx.to(in[1].scalar_type())};
  }
  static constexpr Saves saves = inputs(0, 1, 2, 3, 4, 5);
  Grads gradient(const Saved& saved, const Cotangents& cotangents, Needs) const;
  static Samples<NormGradientOp> samples();
};

/// Returns gradients in the dtypes of the inputs.
Grads in_dtypes(Grads gradients, const Saved& saved) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) gradients[i] = ops::cast(gradients[i], saved.sharding(i).dtype);
  }
  return gradients;
}

/// The gradient of the moments, given those of mean and 1 / sqrt(variance + epsilon).
DTensor moments_gradient(const DTensor& mean, const DTensor& factor_gradient,
                         const DTensor& factor) {
  return ops::stack({mean, factor_gradient * ops::square(factor) * factor * -0.5});
}

Grads NormByOp::gradient(const Saved& saved, const Cotangents& cotangents, Needs needs) const {
  const DTensor &x = saved.in(0), &moments = saved.in(1), &scale = saved.in(2);
  DTensor dy = cotangents[0];
  if (activation != FusedActivation::none) {
    // Computed again: replayed steps, which alone have activations here, run gradients of their
    // own.
    dy = passed(activation, dy, run_op(*this, {x, moments, scale, saved.in(3)}));
  }
  const auto wide_factor = [&] {
    return ops::rsqrt(ops::unstack(wide(moments))[1] + options.epsilon);
  };
  Grads grads(4);
  if (needs[0] && !options.own_moments) {
    const at::ScalarType dtype = at::toOpMathType(x.dtype());
    grads[0] = ops::cast(dy, dtype) * ops::cast(wide(scale) * wide_factor(), dtype);
    // A frozen normalization needs no sums.
    if (!needs[1] && !needs[2] && !needs[3]) return in_dtypes(std::move(grads), saved);
  }
  const NormGradientSumsOp sums_op{*this, options.epsilon};
  std::vector<DTensor> in = {dy, x, moments};
  if (has_features()) in.push_back(scale);
  std::vector<DTensor> sums =
      dispatch(op_info<NormGradientSumsOp>(), &sums_op, attribute_hash(sums_op), in);
  if (!has_features()) {
    // The all-reduce that the gradient of x needs serves the weights, too.
    sums[0] = ops::relayout(sums[0], sums[0].layout().resolved());
    sums.push_back(sum_to(sums[0], pairs_of(scale.shape())));
    sums[0] = sums[0] * ops::cast(scale, at::kDouble);
  }
  if (needs[0] && options.own_moments) {
    const NormGradientOp op{*this, options.epsilon, options.centered};
    grads[0] = run_op(op, {dy, x, moments, scale, sums[0]});
  }
  if (needs[1] && !options.own_moments) {
    const std::vector<DTensor> each = ops::unstack(sums[0]);
    const DTensor factor = wide_factor();
    grads[1] = moments_gradient(-(each[0] * factor), each[1] / factor, factor);
  }
  if (needs[2] || needs[3]) {
    const std::vector<DTensor> each = ops::unstack(sums[1]);
    grads[2] = each[1];
    grads[3] = each[0];
  }
  return in_dtypes(std::move(grads), saved);
}

Grads NormGradientSumsOp::gradient(const Saved& saved, const Cotangents& cotangents, Needs) const {
  const DTensor y = activates() ? saved.in(y_at()) : DTensor();
  const DTensor dy = passed(activation, wide(saved.in(0)), y);
  const DTensor scale = has_features() ? wide(saved.in(3)) : DTensor();
  const std::vector<DTensor> moments = ops::unstack(wide(saved.in(2)));
  const DTensor factor = ops::rsqrt(moments[1] + epsilon);
  const DTensor centered = wide(saved.in(1)) - moments[0], h = centered * factor;
  // The derivatives of all sums' total, by dy and h: of sums of dy · scale and of dy.
  DTensor by_row, by_row_h, by_weight, by_weight_h;
  for (size_t o = 0; o < cotangents.size(); ++o) {
    if (!cotangents[o].defined()) continue;
    const bool scaled = o == 0 && has_features();
    const std::vector<DTensor> each = ops::unstack(cotangents[o]);
    (scaled ? by_row : by_weight) = each[0] + h * each[1];
    (scaled ? by_row_h : by_weight_h) = each[1];
  }
  const auto total = [](const DTensor& a, const DTensor& b) {
    return !a.defined() ? b : b.defined() ? a + b : a;
  };
  const auto scaled = [&](const DTensor& a) { return a.defined() ? a * scale : a; };
  const DTensor dh = dy * total(scaled(by_row_h), by_weight_h);
  const Shape one = moments[0].shape();
  Grads grads = {passed(activation, total(scaled(by_row), by_weight), y), dh * factor,
                 moments_gradient(-(sum_to(dh, one) * factor), sum_to(dh * centered, one), factor)};
  if (has_features()) {
    grads.push_back(by_row.defined() ? sum_to(dy * by_row, scale.shape()) : DTensor());
  }
  if (activates()) grads.emplace_back();
  return in_dtypes(std::move(grads), saved);
}

Grads NormGradientOp::gradient(const Saved& saved, const Cotangents& cotangents, Needs) const {
  const DTensor y = activates() ? saved.in(5) : DTensor();
  const DTensor dy = passed(activation, wide(saved.in(0)), y);
  const DTensor x = wide(saved.in(1)), scale = wide(saved.in(3));
  const std::vector<DTensor> moments = ops::unstack(wide(saved.in(2)));
  const double n = count(saved.shape(1));
  const std::vector<DTensor> means = ops::unstack(wide(saved.in(4)) / n);
  const DTensor factor = ops::rsqrt(moments[1] + epsilon);
  const DTensor shifted = x - moments[0], h = shifted * factor;
  const DTensor t = wide(cotangents[0]), u = t * factor, dh = -(u * means[1]);
  const Shape one = moments[0].shape();
  DTensor inner = dy * scale - h * means[1];
  DTensor of_first = -sum_to(u, one) / n;
  if (centered) {
    inner = inner - means[0];
  } else {
    of_first = ops::scale(of_first, 0);
  }
  const DTensor dfactor = sum_to(t * inner + dh * shifted, one);
  Grads grads = {passed(activation, u * scale, y), dh * factor,
                 moments_gradient(-(sum_to(dh, one) * factor), dfactor, factor),
                 sum_to(u * dy, scale.shape()), ops::stack({of_first, -sum_to(u * h, one) / n})};
  if (activates()) grads.emplace_back();
  return in_dtypes(std::move(grads), saved);
}

SampleInput moments_input(const NormCase& c) { return {c.moments(), at::kDouble, 0.2, 1.2}; }
/// Values on both sides of the bounds of activations.
SampleInput activated_input(const NormCase& c) {
  return {.shape = c.x, .lo = -4, .hi = 10, .differentiable = false};
}

Samples<NormByOp> NormByOp::samples() {
  // With own_moments, the gradient is that of another function, in which the moments are not given.
  Samples<NormByOp> all;
  for (const NormCase& c : norm_cases()) {
    // Large enough to reach relu6's bound.
    const SampleInput scale = {c.weights, at::kDouble, -8, 8};
    all.push_back(
        {{{c.x}, moments_input(c), scale, {c.weights}}, {c.norm, {.epsilon = 0.1}, c.activation}});
  }
  return all;
}

Samples<NormGradientSumsOp> NormGradientSumsOp::samples() {
  Samples<NormGradientSumsOp> all;
  for (const NormCase& c : norm_cases()) {
    std::vector<SampleInput> in = {{c.x}, {c.x}, moments_input(c)};
    if (c.norm.has_features()) in.push_back({c.weights});
    if (c.activation != FusedActivation::none) in.push_back(activated_input(c));
    all.push_back({in, {c.norm, 0.1, c.activation}});
  }
  return all;
}

Samples<NormGradientOp> NormGradientOp::samples() {
  Samples<NormGradientOp> all;
  for (const NormCase& c : norm_cases()) {
    for (const bool centered : {true, false}) {
      std::vector<SampleInput> in = {{c.x}, {c.x}, moments_input(c), {c.weights}, {c.moments()}};
      if (c.activation != FusedActivation::none) in.push_back(activated_input(c));
      all.push_back({in, {c.norm, 0.1, centered, c.activation}});
    }
  }
  return all;
}

TESSERA_REGISTER_OP(NormByOp);
TESSERA_REGISTER_OP(NormGradientSumsOp);
TESSERA_REGISTER_OP(NormGradientOp);

}  // namespace

bool can_normalize(const DTensor& x, const Shape& weights, const ops::Axes& axes) {
  return !on_gpus(x.mesh()) && norm_axes_of(x.shape(), weights, axes).has_value();
}

double norm_epsilon(const OpInfo& info, const void* op) {
  if (&info != &op_info<NormByOp>()) {
    throw StateError("norm_epsilon", "the operation is norm_by", std::string(info.name), "");
  }
  return static_cast<const NormByOp*>(op)->options.epsilon;
}

std::shared_ptr<OpPlan> activated_norm(const OpInfo& info, const void* op,
                                       FusedActivation activation, std::vector<ShardingPtr> in) {
  const auto planned = [&](auto known) -> std::shared_ptr<OpPlan> {
    known.activation = activation;
    return std::make_shared<OpPlan>(info, &known, std::move(in), 0);
  };
  if (&info == &op_info<NormByOp>()) return planned(*static_cast<const NormByOp*>(op));
  if (&info == &op_info<NormGradientSumsOp>()) {
    return planned(*static_cast<const NormGradientSumsOp*>(op));
  }
  if (&info == &op_info<NormGradientOp>()) return planned(*static_cast<const NormGradientOp*>(op));
  return nullptr;
}

DTensor norm_by(const DTensor& x, const DTensor& moments, const DTensor& scale,
                const DTensor& offset, const Shape& weights, const ops::Axes& axes,
                const NormOptions& options) {
  const auto or_filled = [&](const DTensor& weight, double value) {
    if (weight.defined()) return weight;
    return filled(weights, value, at::toOpMathType(x.dtype()),
                  Layout::replicated(x.mesh(), x.rank()));
  };
  return run_op(NormByOp{norm_axes_of(x.shape(), weights, axes).value(), options},
                {x, moments, or_filled(scale, 1), or_filled(offset, 0)});
}

DTensor normalized_over(const DTensor& x, const DTensor& scale, const DTensor& offset,
                        const Shape& weights, const ops::Axes& axes, double epsilon,
                        bool centered) {
  if (can_normalize(x, weights, axes)) {
    return norm_by(x, norm_moments(x, weights, axes, centered), scale, offset, weights, axes,
                   {.epsilon = epsilon, .own_moments = true, .centered = centered});
  }
  const DTensor wide = widened(x);
  const DTensor shifted = centered ? wide - ops::mean(wide, axes, true) : wide;
  DTensor y = shifted * ops::rsqrt(ops::mean(ops::square(shifted), axes, true) + epsilon);
  if (scale.defined()) y = y * ops::cast(scale, y.dtype());
  if (offset.defined()) y = y + ops::cast(offset, y.dtype());
  return ops::cast(y, x.dtype());
}

}  // namespace tessera::detail
