#include <tessera/framework/ops/layer_norm.hpp>

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/normalize.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr std::string_view layer_norm_name = "layer_norm";

/// Rule terms of the operation and its gradient: only axes before the normalized ones are sharded.
struct LayerNormTerms {
  LayerNormTerms(const Spec& x, const Spec& gamma) {
    for (int64_t a = 0; a < x.rank(); ++a) {
      const bool normalized = a >= x.rank() - gamma.rank();
      if (normalized) weights += str(" !c", a);
      rows += str(normalized ? " !c" : " b", a);
      moments += normalized ? " ." : str(" b", a);
    }
  }
  std::string rows, weights, moments;
};

ops::Axes last_axes(int64_t rank, int64_t count) {
  ops::Axes axes;
  for (int64_t a = rank - count; a < rank; ++a) axes.push_back(a);
  return axes;
}

/// Returns the gradient in `like`'s dtype, or zeros if it is undefined.
DTensor or_zeros(const DTensor& gradient, const DTensor& like) {
  if (gradient.defined()) return ops::cast(gradient, like.dtype());
  return filled(like.shape(), 0, like.dtype(), Layout::replicated(like.mesh(), like.rank()));
}

/// Returns the extents of x's last axes, as many as gamma has.
Shape trailing_extents(const Shape& x, const Shape& gamma) {
  return {x.end() - int64_t(std::min(gamma.size(), x.size())), x.end()};
}

void check_not_empty(std::string_view op, const Spec& gamma) {
  if (std::find(gamma.shape.begin(), gamma.shape.end(), 0) == gamma.shape.end()) return;
  throw ShapeError(std::string(op), "the normalized axes must not be empty", to_string(gamma.shape),
                   "pass a tensor that is not empty");
}

/// dy, x, mean and 1 / sqrt(variance + epsilon) from LayerNormOp, gamma -> gradients of x, gamma
/// and beta.
struct LayerNormGradOp {
  static constexpr std::string_view name = "layer_norm_grad";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const {
    check_not_empty(name, in[4]);
    return {in[1], in[4], in[4]};
  }
  Rule rule(const Specs& in) const {
    const LayerNormTerms term(in[1], in[4]);
    Rule rule = Rule::parse(term.rows + " ," + term.rows + " ," + term.moments + " ," +
                            term.moments + " ," + term.weights + " ->" + term.rows + " ," +
                            term.weights + " ," + term.weights);
    for (FactorKind& kind : rule.factors) {
      if (kind == FactorKind::pass) kind = FactorKind::reduce;
    }
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const at::ScalarType dtype = at::toOpMathType(in[1].scalar_type());
    const at::Tensor gamma = in[4].to(dtype);
    // ATen needs contiguous moments, and reads only the shape of beta.
    const auto [dx, dgamma, dbeta] = at::native_layer_norm_backward(
        in[0].to(dtype), in[1].to(dtype), gamma.sizes(), in[2].to(dtype).contiguous(),
        in[3].to(dtype).contiguous(), gamma, gamma, {true, true, true});
    Tensors grads = {dx, dgamma, dbeta};
    for (at::Tensor& each : grads) each = each.to(in[1].scalar_type());
    return grads;
  }
  static constexpr Saves saves = inputs(0, 1, 2, 3, 4);
  Grads gradient(const Saved& saved, const Cotangents& cotangents, Needs) const;
  static Samples<LayerNormGradOp> samples();
};

/// Fused layer norm over the last axes, as many as gamma has, which must not be sharded. Returns y,
/// the mean and 1 / sqrt(variance + epsilon).
struct LayerNormOp {
  static constexpr std::string_view name = layer_norm_name;
  double epsilon = 1e-3;
  auto attributes() const { return std::tie(epsilon); }
  Specs infer(const Specs& in) const;
  Rule rule(const Specs& in) const {
    const LayerNormTerms term(in[0], in[1]);
    return Rule::parse(term.rows + " ," + term.weights + " ," + term.weights + " ->" + term.rows +
                       " ," + term.moments + " ," + term.moments);
  }
  Tensors forward(const LocalArgs& in) const {
    const at::ScalarType dtype = at::toOpMathType(in[0].scalar_type());
    const auto [y, mean, factor] = at::native_layer_norm(in[0].to(dtype), in[1].sizes(),
                                                         in[1].to(dtype), in[2].to(dtype), epsilon);
    return {y.to(in[0].scalar_type()), mean, factor};
  }
  static constexpr Saves saves{0b011, 0b110};
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const;
  static Samples<LayerNormOp> samples();
};

Specs LayerNormOp::infer(const Specs& in) const {
  check_floating(name, in[0]);
  check_same_dtype(name, in);
  const Shape& x = in[0].shape;
  if (in[2].shape != in[1].shape || trailing_extents(x, in[1].shape) != in[1].shape) {
    throw ShapeError(
        std::string(name), "gamma and beta have the extents of the normalized axes",
        to_string(in[1].shape) + " and " + to_string(in[2].shape) + " for " + to_string(x),
        "reshape them");
  }
  check_not_empty(name, in[1]);
  Shape moment(x.begin(), x.end() - in[1].rank());
  moment.resize(x.size(), 1);
  const at::ScalarType dtype = at::toOpMathType(in[0].dtype);
  return {in[0], {moment, dtype}, {moment, dtype}};
}

Grads LayerNormOp::gradient(const Saved& saved, const Cotangents& cotangents, Needs) const {
  const DTensor x = saved.in(0), gamma = saved.in(1), mean = saved.out(1), factor = saved.out(2);
  const DTensor dy = or_zeros(cotangents[0], x);
  const LayerNormGradOp op;
  Grads grads = dispatch(op_info<LayerNormGradOp>(), &op, attribute_hash(op),
                         std::vector<DTensor>{dy, x, mean, factor, gamma});
  // Gradients of the moments, which occur in second derivatives.
  const auto count = double(ops::reduced_count(gamma.shape(), {}));
  if (cotangents[1].defined()) grads[0] = grads[0] + ops::cast(cotangents[1] / count, x.dtype());
  if (cotangents[2].defined()) {
    const DTensor slope = factor * factor * factor * cotangents[2] / -count;
    grads[0] = grads[0] + ops::cast((ops::cast(x, mean.dtype()) - mean) * slope, x.dtype());
  }
  return grads;
}

/// Second derivative. With g = dy · gamma, h = (x - mean) · factor and means over rows, the
/// operation is dx = factor · (g - mean(g) - h · mean(g · h)), dgamma = sum(dy · h), dbeta =
/// sum(dy).
Grads LayerNormGradOp::gradient(const Saved& saved, const Cotangents& cotangents, Needs) const {
  const auto wide = [&](size_t i) {
    return ops::cast(saved.in(i), at::toOpMathType(saved.in(1).dtype()));
  };
  const DTensor dy = wide(0), centered = wide(1) - wide(2), factor = wide(3), gamma = wide(4);
  const DTensor h = centered * factor, g = dy * gamma;
  const DTensor ddx = or_zeros(cotangents[0], dy), ddgamma = or_zeros(cotangents[1], gamma),
                ddbeta = or_zeros(cotangents[2], gamma);
  const ops::Axes axes = last_axes(dy.rank(), gamma.rank());
  const auto row_mean = [&](const DTensor& v) { return ops::mean(v, axes, true); };
  const auto row_sum = [&](const DTensor& v) { return ops::sum(v, axes, true); };
  // A linear map that is its own transpose.
  const auto projected = [&](const DTensor& v) { return v - row_mean(v) - h * row_mean(v * h); };
  const DTensor t = factor * projected(ddx);
  const DTensor dh = dy * ddgamma - factor * (ddx * row_mean(g * h) + g * row_mean(ddx * h));
  const DTensor dcentered = factor * dh;
  Grads grads = {gamma * t + h * ddgamma + ddbeta, dcentered, -row_sum(dcentered),
                 row_sum(ddx * projected(g) + centered * dh), sum_to(dy * t, gamma.shape())};
  for (size_t i = 0; i < grads.size(); ++i) grads[i] = ops::cast(grads[i], saved.in(i).dtype());
  return grads;
}

Samples<LayerNormOp> LayerNormOp::samples() {
  return {{{{{3, 4}}, {{4}}, {{4}}}, {0.1}},
          {{{{2, 3, 2}}, {{2}}, {{2}}}, {0.1}},
          {{{{3, 2, 2}}, {{2, 2}}, {{2, 2}}}, {0.1}},
          {{{{3}}, {{3}}, {{3}}}, {0.1}}};
}

Samples<LayerNormGradOp> LayerNormGradOp::samples() {
  const auto of = [](const Shape& x, const Shape& moments, const Shape& gamma) {
    return Sample<LayerNormGradOp>{{{x}, {x}, {moments}, {moments, at::kDouble, 0.5, 1.5}, {gamma}},
                                   {}};
  };
  return {of({3, 4}, {3, 1}, {4}), of({2, 3, 2}, {2, 3, 1}, {2}), of({3, 2, 2}, {3, 1, 1}, {2, 2}),
          of({3}, {1}, {3})};
}

TESSERA_REGISTER_OP(LayerNormGradOp);
TESSERA_REGISTER_OP(LayerNormOp);

}  // namespace

namespace ops {

DTensor layer_norm(const DTensor& x, const DTensor& gamma, const DTensor& beta, const Axes& axes,
                   double epsilon) {
  Axes list;
  for (const int64_t axis : axes) {
    list.push_back(normalize_axis(axis, x.rank(), std::string(layer_norm_name)));
  }
  std::sort(list.begin(), list.end());
  const auto rank = int64_t(list.size());
  Shape extents, weight_shape(x.shape().size(), 1);
  bool fused = list == last_axes(x.rank(), rank);
  for (const int64_t axis : list) {
    extents.push_back(x.size(axis));
    weight_shape[size_t(axis)] = x.size(axis);
    fused = fused && x.layout().num_shards(axis) == 1;
  }
  for (const DTensor& weight : {gamma, beta}) {
    fused = fused && (!weight.defined() || weight.layout().used_dims() == 0);
  }
  if (fused) {
    const auto or_filled = [&](const DTensor& weight, double value) {
      if (weight.defined()) return weight;
      return filled(extents, value, x.dtype(), Layout::replicated(x.mesh(), rank));
    };
    return run_op(LayerNormOp{epsilon}, {x, or_filled(gamma, 1), or_filled(beta, 0)});
  }
  const auto weight = [&](const DTensor& values) {
    return values.defined() ? reshape(values, weight_shape) : values;
  };
  return normalized_over(x, weight(gamma), weight(beta), weight_shape, list, epsilon);
}

}  // namespace ops
}  // namespace tessera
