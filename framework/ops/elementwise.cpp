#include <tessera/framework/ops/elementwise.hpp>

#include <limits>
#include <numbers>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/elementwise_grad.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

namespace {

/// x · factor.
struct ScaleOp {
  static constexpr std::string_view name = "scale";
  double factor = 1;
  auto attributes() const { return std::tie(factor); }
  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return broadcast_rule(in).passing(Passes::sums); }
  Tensors forward(const LocalArgs& in) const { return {in[0].mul(factor)}; }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const {
    return {ops::scale(dy[0], factor)};
  }
  static Samples<ScaleOp> samples() { return {{{{{3, 4}}}, {-2.5}}}; }
};

/// x + value.
struct AddScalarOp {
  static constexpr std::string_view name = "add_scalar";
  double value = 0;
  auto attributes() const { return std::tie(value); }
  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return broadcast_rule(in); }
  Tensors forward(const LocalArgs& in) const { return {in[0].add(value)}; }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const { return {dy[0]}; }
  static Samples<AddScalarOp> samples() { return {{{{{3, 4}}}, {1.5}}}; }
};

/// x^exponent.
struct PowScalarOp {
  static constexpr std::string_view name = "pow_scalar";
  double exponent = 1;
  auto attributes() const { return std::tie(exponent); }
  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return broadcast_rule(in); }
  Tensors forward(const LocalArgs& in) const { return {in[0].pow(exponent)}; }
  static constexpr Saves saves = inputs(0);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {dy[0] * ops::pow(saved.in(0), exponent - 1) * exponent};
  }
  static Samples<PowScalarOp> samples() {
    return {{{{{3, 4}, at::kDouble, 0.4, 2}}, {1.7}}, {{{{2, 3}}}, {3}}};
  }
};

/// x · factor, factor a 0-d tensor.
struct ScaleByOp {
  static constexpr std::string_view name = "scale_by";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const {
    check_same_dtype(name, in);
    if (!in[1].shape.empty()) {
      throw ShapeError("scale_by", "the factor is a 0-d tensor", to_string(in[1].shape),
                       "use mul to broadcast");
    }
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return broadcast_rule(in).passing(Passes::sums, {0}); }
  Tensors forward(const LocalArgs& in) const { return {in[0].mul(in[1])}; }
  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs needs) const {
    Grads grads(2);
    if (needs[0]) grads[0] = ops::scale_by(dy[0], saved.in(1));
    if (needs[1]) grads[1] = ops::sum(dy[0] * saved.in(0));
    return grads;
  }
  static Samples<ScaleByOp> samples() { return {{{{{3, 4}}, {{}}}}}; }
};

/// x in another dtype.
struct CastOp {
  static constexpr std::string_view name = "cast";
  static constexpr bool keeps_parameter = true;
  static constexpr bool only_casts = true;
  at::ScalarType dtype = at::kFloat;
  auto attributes() const { return std::tie(dtype); }
  Specs infer(const Specs& in) const { return {{in[0].shape, dtype}}; }
  Rule rule(const Specs& in) const {
    Rule rule = broadcast_rule(in);
    const bool widens = at::isFloatingType(dtype) && at::isFloatingType(in[0].dtype) &&
                        c10::elementSize(dtype) >= c10::elementSize(in[0].dtype);
    if (widens) rule.passing(Passes::sums);
    return rule;
  }
  Tensors forward(const LocalArgs& in) const { return {in[0].to(dtype)}; }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    if (!at::isFloatingType(dtype)) return {DTensor()};
    return {ops::cast(dy[0], saved.sharding(0).dtype)};
  }
  static Samples<CastOp> samples() {
    return {{{{{3, 4}}}, {at::kDouble}}, {{{{3, 4}, at::kLong, -5, 5}}, {at::kDouble}}};
  }
};

/// condition ? a : b.
struct WhereOp {
  static constexpr std::string_view name = "where";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const {
    check_same_dtype(name, in, 1);
    if (in[0].dtype != at::kBool) {
      throw ConfigError("where", "the condition has dtype bool", dtype_name(in[0].dtype),
                        "compare it with a value");
    }
    return {{broadcast_shape(name, in), in[1].dtype}};
  }
  Rule rule(const Specs& in) const { return broadcast_rule(in); }
  Tensors forward(const LocalArgs& in) const { return {at::where(in[0], in[1], in[2])}; }
  static constexpr Saves saves = inputs(0);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs needs) const {
    Grads grads(3);
    const DTensor zero = filled({}, 0, dy[0].dtype(), Layout::replicated(dy[0].mesh(), 0));
    if (needs[1]) grads[1] = sum_to(ops::where(saved.in(0), dy[0], zero), saved.shape(1));
    if (needs[2]) grads[2] = sum_to(ops::where(saved.in(0), zero, dy[0]), saved.shape(2));
    return grads;
  }
  static Samples<WhereOp> samples() {
    return {{{{{3, 4}, at::kBool, 0, 2}, {{3, 4}}, {{3, 4}}}},
            {{{{3, 1}, at::kBool, 0, 2}, {{4}}, {{}}}}};
  }
};

/// min(max(x, lo), hi).
struct ClipOp {
  static constexpr std::string_view name = "clip";
  double lo = 0, hi = 1;
  auto attributes() const { return std::tie(lo, hi); }
  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return broadcast_rule(in); }
  Tensors forward(const LocalArgs& in) const { return {in[0].clamp(lo, hi)}; }
  static constexpr Saves saves = inputs(0);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {clip_grad(dy[0], saved.in(0), lo, hi)};
  }
  static Samples<ClipOp> samples() { return {{{{{3, 4}, at::kDouble, -2, 2}}, {-0.5, 0.7}}}; }
};

/// dy where lo <= x <= hi.
struct ClipGradOp {
  static constexpr std::string_view name = "clip_grad";
  double lo = 0, hi = 1;
  auto attributes() const { return std::tie(lo, hi); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const { return broadcast_rule(in); }
  Tensors forward(const LocalArgs& in) const {
    return {at::where(in[1].ge(lo).logical_and_(in[1].le(hi)), in[0], at::zeros_like(in[0]))};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {clip_grad(dy[0], saved.in(1), lo, hi), DTensor()};
  }
  static Samples<ClipGradOp> samples() {
    SampleInput x{{3, 4}, at::kDouble, -2, 2};
    x.differentiable = false;
    return {{{{{3, 4}}, x}, {-0.5, 0.7}}};
  }
};

DTensor in_floating_point(const DTensor& x) {
  return at::isFloatingType(x.dtype()) ? x : ops::cast(x, at::kFloat);
}

/// Returns whether elements are equal to an infinity.
DTensor equals_infinity(const DTensor& x, double infinity) {
  if (!at::isFloatingType(x.dtype())) return ops::isinf(x);
  return ops::equal(x, filled({}, infinity, x.dtype(), Layout::replicated(x.mesh(), 0)));
}

/// Returns the largest finite number of a floating dtype.
double largest(at::ScalarType dtype) {
  if (dtype == at::kDouble) return std::numeric_limits<double>::max();
  if (dtype == at::kHalf) return std::numeric_limits<at::Half>::max();
  if (dtype == at::kBFloat16) return std::numeric_limits<at::BFloat16>::max();
  return std::numeric_limits<float>::max();
}

TESSERA_REGISTER_OP(ScaleOp);
TESSERA_REGISTER_OP(AddScalarOp);
TESSERA_REGISTER_OP(PowScalarOp);
TESSERA_REGISTER_OP(ScaleByOp);
TESSERA_REGISTER_OP(CastOp);
TESSERA_REGISTER_OP(WhereOp);
TESSERA_REGISTER_OP(ClipOp);
TESSERA_REGISTER_OP(ClipGradOp);

}  // namespace

namespace ops {

DTensor scale(const DTensor& x, double factor) { return run_op(ScaleOp{factor}, {x}); }
DTensor add_scalar(const DTensor& x, double value) { return run_op(AddScalarOp{value}, {x}); }
DTensor pow(const DTensor& x, double exponent) { return run_op(PowScalarOp{exponent}, {x}); }
DTensor scale_by(const DTensor& x, const DTensor& factor) {
  return run_op(ScaleByOp{}, {x, factor});
}

DTensor cast(const DTensor& x, at::ScalarType dtype) {
  return x.dtype() == dtype ? x : run_op(CastOp{dtype}, {x});
}

DTensor where(const DTensor& condition, const DTensor& a, const DTensor& b) {
  return run_op(WhereOp{}, {condition, a, b});
}

DTensor clip(const DTensor& x, double lo, double hi) { return run_op(ClipOp{lo, hi}, {x}); }

DTensor nan_to_num(const DTensor& x, double nan, std::optional<double> posinf,
                   std::optional<double> neginf) {
  if (!at::isFloatingType(x.dtype())) return x;
  const auto number = [&x](double value) {
    return filled({}, value, x.dtype(), Layout::replicated(x.mesh(), 0));
  };
  const double top = largest(x.dtype()), infinity = std::numeric_limits<double>::infinity();
  const DTensor finite = where(isnan(x), number(nan), x);
  const DTensor below = where(equal(x, number(infinity)), number(posinf.value_or(top)), finite);
  return where(equal(x, number(-infinity)), number(neginf.value_or(-top)), below);
}

DTensor isposinf(const DTensor& x) {
  return equals_infinity(x, std::numeric_limits<double>::infinity());
}

DTensor isneginf(const DTensor& x) {
  return equals_infinity(x, -std::numeric_limits<double>::infinity());
}

DTensor deg2rad(const DTensor& x) { return scale(in_floating_point(x), std::numbers::pi / 180); }
DTensor rad2deg(const DTensor& x) { return scale(in_floating_point(x), 180 / std::numbers::pi); }
DTensor fabs(const DTensor& x) { return abs(in_floating_point(x)); }

}  // namespace ops

DTensor detail::clip_grad(const DTensor& dy, const DTensor& x, double lo, double hi) {
  return run_op(ClipGradOp{lo, hi}, {dy, x});
}

}  // namespace tessera
