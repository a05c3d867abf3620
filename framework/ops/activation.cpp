#include <tessera/framework/ops/activation.hpp>

#include <array>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/elementwise_rows.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

using at::Tensor;
/// Options of an activation: alpha, threshold …
using Constants = std::array<double, 2>;

/// An activation function and its fused gradient, an operation of its own.
struct ActivationRow {
  std::string_view name, grad_name;
  Tensor (*forward)(const Tensor& x, const Constants& n);
  Tensor (*backward)(const Tensor& dy, const Tensor& x, const Constants& n);
  Constants sample;
  DTensor (*second)(const DTensor& x, const Constants& n);  ///< second derivative
};

constexpr double selu_alpha = 1.6732632423543772848170429916717;
constexpr double selu_scale = 1.0507009873554804934193349852946;

const char* gelu_kind(const Constants& n) { return n[0] != 0 ? "tanh" : "none"; }

/// Whether x is float64 on a GPU, where ATen's hardsigmoid and hardswish round 1/6 to float32.
bool float64_on_gpu(const Tensor& x) { return x.is_cuda() && x.scalar_type() == at::kDouble; }

Tensor hard_sigmoid_of(const Tensor& x) {
  return float64_on_gpu(x) ? x.add(3).clamp_(0, 6).div_(6) : at::hardsigmoid(x);
}

/// 1 where lo < x < hi, else 0.
DTensor between(const DTensor& x, double lo, double hi) {
  return ops::cast(ops::logical_and(x > lo, x < hi), x.dtype());
}

/// exp(x / width) where x < 0, else 0; no exponential overflows.
DTensor negative_exp(const DTensor& x, double width) {
  return ops::exp(ops::minimum(x, 0.0) / width) * ops::cast(x < 0.0, x.dtype());
}

/// Second derivative of piecewise linear functions: 0.
DTensor piecewise_linear_second(const DTensor& x, const Constants&) { return x * 0.0; }

DTensor elu_second(const DTensor& x, const Constants& n) {
  return negative_exp(x, n[1]) * (n[0] / (n[1] * n[1]));
}

DTensor gelu_second(const DTensor& x, const Constants& n) {
  const DTensor squares = ops::square(x);
  if (n[0] == 0) {
    constexpr double density = 0.39894228040143267794;  // 1/sqrt(2 pi)
    return ops::exp(squares * -0.5) * (-squares + 2.0) * density;
  }
  constexpr double slope = 0.79788456080286535588, cubic = 0.044715;  // sqrt(2/pi)
  const DTensor t = ops::tanh(x * (squares * cubic + 1.0) * slope);
  const DTensor inner = (squares * (3 * cubic) + 1.0) * slope;
  const DTensor curved = squares * (3 * cubic * slope) - x * t * ops::square(inner);
  return (-ops::square(t) + 1.0) * (inner + curved);
}

DTensor log_sigmoid_second(const DTensor& x, const Constants&) {
  const DTensor s = ops::sigmoid(x);
  return s * (s - 1.0);
}

DTensor mish_second(const DTensor& x, const Constants&) {
  const DTensor s = ops::sigmoid(x), t = ops::tanh(ops::softplus(x));
  const DTensor slope = s * (-ops::square(t) + 1.0);
  return slope * (x * (-s - s * t * 2.0 + 1.0) + 2.0);
}

DTensor silu_second(const DTensor& x, const Constants&) {
  const DTensor s = ops::sigmoid(x);
  return s * (-s + 1.0) * (x * (s * -2.0 + 1.0) + 2.0);
}

DTensor softsign_second(const DTensor& x, const Constants&) {
  return ops::sign(x) * ops::pow(ops::abs(x) + 1.0, -3) * -2.0;
}

DTensor squareplus_second(const DTensor& x, const Constants& n) {
  return ops::pow(ops::square(x) + n[0], -1.5) * (0.5 * n[0]);
}

DTensor tanh_shrink_second(const DTensor& x, const Constants&) {
  const DTensor t = ops::tanh(x);
  return t * (-ops::square(t) + 1.0) * 2.0;
}

// name, gradient's name, forward, backward, sample options, second derivative
constexpr ActivationRow activation_rows[] = {
    {"elu",
     "elu_grad",
     [](const Tensor& x, const Constants& n) { return at::elu(x, n[0], 1, 1 / n[1]); },
     [](const Tensor& dy, const Tensor& x, const Constants& n) {
       return at::elu_backward(dy, n[0], 1, 1 / n[1], false, x);
     },
     {1.5, 0.7},
     elu_second},
    {"gelu",
     "gelu_grad",
     [](const Tensor& x, const Constants& n) { return at::gelu(x, gelu_kind(n)); },
     [](const Tensor& dy, const Tensor& x, const Constants& n) {
       return at::gelu_backward(dy, x, gelu_kind(n));
     },
     {},
     gelu_second},
    {"hard_shrink",
     "hard_shrink_grad",
     [](const Tensor& x, const Constants& n) { return at::hardshrink(x, n[0]); },
     [](const Tensor& dy, const Tensor& x, const Constants& n) {
       return at::hardshrink_backward(dy, x, n[0]);
     },
     {0.5},
     piecewise_linear_second},
    {"hard_sigmoid",
     "hard_sigmoid_grad",
     [](const Tensor& x, const Constants&) { return hard_sigmoid_of(x); },
     // ATen's hardsigmoid_backward rounds 1/6 to float32.
     [](const Tensor& dy, const Tensor& x, const Constants&) {
       return at::hardtanh_backward(dy, x, -3, 3).div_(6);
     },
     {},
     piecewise_linear_second},
    {"hard_silu",
     "hard_silu_grad",
     [](const Tensor& x, const Constants&) {
       return float64_on_gpu(x) ? hard_sigmoid_of(x).mul_(x) : at::hardswish(x);
     },
     [](const Tensor& dy, const Tensor& x, const Constants&) {
       if (!float64_on_gpu(x)) return at::hardswish_backward(dy, x);
       // 0 below -3, 1 above 3, x/3 + 1/2 between.
       const Tensor inner = x.div(3).add_(0.5);
       return at::where(x.le(-3), 0, at::where(x.lt(3), inner, 1)).mul_(dy);
     },
     {},
     [](const DTensor& x, const Constants&) { return between(x, -3, 3) / 3.0; }},
    {"leaky_relu",
     "leaky_relu_grad",
     [](const Tensor& x, const Constants& n) { return at::leaky_relu(x, n[0]); },
     [](const Tensor& dy, const Tensor& x, const Constants& n) {
       return at::leaky_relu_backward(dy, x, n[0], false);
     },
     {0.2},
     piecewise_linear_second},
    {"log_sigmoid",
     "log_sigmoid_grad",
     [](const Tensor& x, const Constants&) { return at::log_sigmoid(x); },
     [](const Tensor& dy, const Tensor& x, const Constants&) {
       return x.neg().sigmoid_().mul_(dy);
     },
     {},
     log_sigmoid_second},
    {"mish",
     "mish_grad",
     [](const Tensor& x, const Constants&) { return at::mish(x); },
     [](const Tensor& dy, const Tensor& x, const Constants&) { return at::mish_backward(dy, x); },
     {},
     mish_second},
    {"relu6",
     "relu6_grad",
     [](const Tensor& x, const Constants&) { return at::hardtanh(x, 0, 6); },
     [](const Tensor& dy, const Tensor& x, const Constants&) {
       return at::hardtanh_backward(dy, x, 0, 6);
     },
     {},
     piecewise_linear_second},
    {"selu",
     "selu_grad",
     [](const Tensor& x, const Constants&) { return at::selu(x); },
     // At 0, ATen's gradient takes the slope of negative x; Keras takes that of positive x.
     [](const Tensor& dy, const Tensor& x, const Constants&) {
       const Tensor slope = x.exp().mul_(selu_scale * selu_alpha).masked_fill_(x.ge(0), selu_scale);
       return slope.mul_(dy);
     },
     {},
     [](const DTensor& x, const Constants&) {
       return negative_exp(x, 1) * (selu_scale * selu_alpha);
     }},
    {"silu",
     "silu_grad",
     [](const Tensor& x, const Constants&) { return at::silu(x); },
     [](const Tensor& dy, const Tensor& x, const Constants&) { return at::silu_backward(dy, x); },
     {},
     silu_second},
    {"soft_shrink",
     "soft_shrink_grad",
     [](const Tensor& x, const Constants& n) { return at::softshrink(x, n[0]); },
     [](const Tensor& dy, const Tensor& x, const Constants& n) {
       return at::softshrink_backward(dy, x, n[0]);
     },
     {0.5},
     piecewise_linear_second},
    {"softsign",
     "softsign_grad",
     [](const Tensor& x, const Constants&) { return x / x.abs().add_(1); },
     [](const Tensor& dy, const Tensor& x, const Constants&) {
       return dy / x.abs().add_(1).square_();
     },
     {},
     softsign_second},
    {"sparse_plus",
     "sparse_plus_grad",
     [](const Tensor& x, const Constants&) {
       return at::maximum(x.add(1).clamp_(0, 2).square_().mul_(0.25), x);
     },
     [](const Tensor& dy, const Tensor& x, const Constants&) {
       return x.add(1).mul_(0.5).clamp_(0, 1).mul_(dy);
     },
     {},
     [](const DTensor& x, const Constants&) { return between(x, -1, 1) * 0.5; }},
    {"sparse_sigmoid",
     "sparse_sigmoid_grad",
     [](const Tensor& x, const Constants&) { return x.add(1).mul_(0.5).clamp_(0, 1); },
     [](const Tensor& dy, const Tensor& x, const Constants&) {
       return at::hardtanh_backward(dy, x, -1, 1).mul_(0.5);
     },
     {},
     piecewise_linear_second},
    {"squareplus",
     "squareplus_grad",
     [](const Tensor& x, const Constants& n) {
       return x.square().add_(n[0]).sqrt_().add_(x).mul_(0.5);
     },
     [](const Tensor& dy, const Tensor& x, const Constants& n) {
       return x.square().add_(n[0]).rsqrt_().mul_(x).add_(1).mul_(0.5).mul_(dy);
     },
     {4},
     squareplus_second},
    {"tanh_shrink",
     "tanh_shrink_grad",
     [](const Tensor& x, const Constants&) { return x - x.tanh(); },
     [](const Tensor& dy, const Tensor& x, const Constants&) {
       return x.tanh().square_().mul_(dy);
     },
     {},
     tanh_shrink_second},
    {"threshold",
     "threshold_grad",
     [](const Tensor& x, const Constants& n) { return at::threshold(x, n[0], n[1]); },
     [](const Tensor& dy, const Tensor& x, const Constants& n) {
       return at::threshold_backward(dy, x, n[0]);
     },
     {0.5, -1},
     piecewise_linear_second},
};
constexpr size_t activation_count = std::size(activation_rows);

template <size_t Row>
struct ActivationGradOp {
  static constexpr const ActivationRow& row = activation_rows[Row];
  static constexpr std::string_view name = row.grad_name;
  Constants numbers = {};
  auto attributes() const { return std::tie(numbers); }

  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const { return broadcast_rule(in); }
  Tensors forward(const LocalArgs& in) const { return {row.backward(in[0], in[1], numbers)}; }
  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs needs) const {
    Grads grads(2);
    if (needs[0]) grads[0] = run_op(*this, {dy[0], saved.in(1)});
    if (needs[1]) {
      const DTensor slope = row.second(widened(saved.in(1)), numbers);
      grads[1] = ops::cast(widened(dy[0]) * widened(saved.in(0)) * slope, saved.in(1).dtype());
    }
    return grads;
  }
  static Samples<ActivationGradOp> samples() {
    return {{{{{3, 5}}, {{3, 5}, at::kDouble, -4, 4}}, {row.sample}}};
  }
};

template <size_t Row>
struct ActivationOp {
  static constexpr const ActivationRow& row = activation_rows[Row];
  static constexpr std::string_view name = row.name;
  Constants numbers = {};
  auto attributes() const { return std::tie(numbers); }

  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return broadcast_rule(in); }
  Tensors forward(const LocalArgs& in) const { return {row.forward(in[0], numbers)}; }
  static constexpr Saves saves = inputs(0);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {run_op(ActivationGradOp<Row>{numbers}, {dy[0], saved.in(0)})};
  }
  static Samples<ActivationOp> samples() {
    return {{{{{3, 5}, at::kDouble, -4, 4}}, {row.sample}}, {{{{}}}, {row.sample}}};
  }
};

template <size_t... Row>
bool register_activation(std::index_sequence<Row...>) {
  return (register_op(op_info<ActivationOp<Row>>()) && ...) &&
         (register_op(op_info<ActivationGradOp<Row>>()) && ...);
}
[[maybe_unused]] const bool activation_registered =
    register_activation(std::make_index_sequence<activation_count>());

constexpr size_t activation_row(std::string_view name) { return find_row(activation_rows, name); }

}  // namespace

namespace ops {

DTensor celu(const DTensor& x, double alpha) {
  if (alpha == 0) throw ConfigError("celu", "alpha is not 0", "0", "use relu");
  return elu(x, alpha, alpha);
}
DTensor elu(const DTensor& x, double alpha, double width) {
  return run_op(ActivationOp<activation_row("elu")>{{alpha, width}}, {x});
}
DTensor gelu(const DTensor& x, bool approximate) {
  return run_op(ActivationOp<activation_row("gelu")>{{approximate ? 1.0 : 0.0}}, {x});
}
DTensor glu(const DTensor& x, int64_t axis) {
  const int64_t a = normalize_axis(axis, x.rank(), "glu");
  if (x.size(a) % 2 != 0) {
    throw ShapeError("glu", str("axis ", axis, " has an even extent"), to_string(x.shape()),
                     "give the layer before it twice the units");
  }
  const int64_t half = x.size(a) / 2;
  return slice(x, a, 0, half) * sigmoid(slice(x, a, half, half));
}
DTensor hard_shrink(const DTensor& x, double threshold) {
  return run_op(ActivationOp<activation_row("hard_shrink")>{{threshold}}, {x});
}
DTensor hard_sigmoid(const DTensor& x) {
  return run_op(ActivationOp<activation_row("hard_sigmoid")>{}, {x});
}
DTensor hard_silu(const DTensor& x) {
  return run_op(ActivationOp<activation_row("hard_silu")>{}, {x});
}
DTensor hard_swish(const DTensor& x) { return hard_silu(x); }
DTensor hard_tanh(const DTensor& x) { return clip(x, -1, 1); }
DTensor leaky_relu(const DTensor& x, double negative_slope) {
  return run_op(ActivationOp<activation_row("leaky_relu")>{{negative_slope}}, {x});
}
DTensor log_sigmoid(const DTensor& x) {
  return run_op(ActivationOp<activation_row("log_sigmoid")>{}, {x});
}
DTensor mish(const DTensor& x) { return run_op(ActivationOp<activation_row("mish")>{}, {x}); }
DTensor relu6(const DTensor& x) { return run_op(ActivationOp<activation_row("relu6")>{}, {x}); }
DTensor selu(const DTensor& x) { return run_op(ActivationOp<activation_row("selu")>{}, {x}); }
DTensor silu(const DTensor& x) { return run_op(ActivationOp<activation_row("silu")>{}, {x}); }
DTensor swish(const DTensor& x) { return silu(x); }
DTensor soft_shrink(const DTensor& x, double threshold) {
  return run_op(ActivationOp<activation_row("soft_shrink")>{{threshold}}, {x});
}
DTensor softsign(const DTensor& x) {
  return run_op(ActivationOp<activation_row("softsign")>{}, {x});
}
DTensor sparse_plus(const DTensor& x) {
  return run_op(ActivationOp<activation_row("sparse_plus")>{}, {x});
}
DTensor sparse_sigmoid(const DTensor& x) {
  return run_op(ActivationOp<activation_row("sparse_sigmoid")>{}, {x});
}
DTensor squareplus(const DTensor& x, double b) {
  return run_op(ActivationOp<activation_row("squareplus")>{{b}}, {x});
}
DTensor tanh_shrink(const DTensor& x) {
  return run_op(ActivationOp<activation_row("tanh_shrink")>{}, {x});
}
DTensor threshold(const DTensor& x, double threshold, double default_value) {
  return run_op(ActivationOp<activation_row("threshold")>{{threshold, default_value}}, {x});
}

}  // namespace ops
}  // namespace tessera
