#include <numbers>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/elementwise_grad.hpp>
#include <tessera/framework/ops/internal/elementwise_rows.hpp>

namespace tessera {

using namespace detail;

namespace {

using at::Tensor;
using D = DTensor;
using Types = UnaryRow::Types;

constexpr Saves x_saved = inputs(0);
constexpr Saves y_saved = outputs(0);

// name, forward, saved for the gradient, gradient, sample range, linear, dtypes, returns bool
constexpr UnaryRow unary_rows[] = {
    {"neg", [](const Tensor& x) { return at::neg(x); }, nothing_saved,
     [](const D&, const D&, const D& dy) { return ops::neg(dy); }, -2, 2, true, Types::any},
    {"abs", [](const Tensor& x) { return at::abs(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy * ops::sign(x); }, 0.1, 2, false,
     Types::any},
    {"sign", [](const Tensor& x) { return at::sign(x); }, nothing_saved, nullptr, -2, 2, false,
     Types::any},
    {"exp", [](const Tensor& x) { return at::exp(x); }, y_saved,
     [](const D&, const D& y, const D& dy) { return dy * y; }},
    {"exp2", [](const Tensor& x) { return at::exp2(x); }, y_saved,
     [](const D&, const D& y, const D& dy) { return dy * y * std::numbers::ln2; }},
    {"expm1", [](const Tensor& x) { return at::expm1(x); }, y_saved,
     [](const D&, const D& y, const D& dy) { return dy * (y + 1.0); }},
    {"log", [](const Tensor& x) { return at::log(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy / x; }, 0.3, 2},
    {"log1p", [](const Tensor& x) { return at::log1p(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy / (x + 1.0); }, -0.5, 2},
    {"log2", [](const Tensor& x) { return at::log2(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy / x * (1 / std::numbers::ln2); }, 0.3, 2},
    {"log10", [](const Tensor& x) { return at::log10(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy / x * (1 / std::numbers::ln10); }, 0.3, 2},
    {"sqrt", [](const Tensor& x) { return at::sqrt(x); }, y_saved,
     [](const D&, const D& y, const D& dy) { return dy / (y * 2.0); }, 0.3, 2},
    {"rsqrt", [](const Tensor& x) { return at::rsqrt(x); }, y_saved,
     [](const D&, const D& y, const D& dy) { return dy * ops::pow(y, 3) * -0.5; }, 0.3, 2},
    {"square", [](const Tensor& x) { return at::square(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy * x * 2.0; }, -2, 2, false, Types::any},
    {"reciprocal", [](const Tensor& x) { return at::reciprocal(x); }, y_saved,
     [](const D&, const D& y, const D& dy) { return -(dy * ops::square(y)); }, 0.3, 2},
    {"sin", [](const Tensor& x) { return at::sin(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy * ops::cos(x); }},
    {"cos", [](const Tensor& x) { return at::cos(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return -(dy * ops::sin(x)); }},
    {"tan", [](const Tensor& x) { return at::tan(x); }, y_saved,
     [](const D&, const D& y, const D& dy) { return dy * (ops::square(y) + 1.0); }, -1, 1},
    {"arcsin", [](const Tensor& x) { return at::asin(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy * ops::rsqrt(-ops::square(x) + 1.0); }, -0.8,
     0.8},
    {"arccos", [](const Tensor& x) { return at::acos(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return -(dy * ops::rsqrt(-ops::square(x) + 1.0)); },
     -0.8, 0.8},
    {"arctan", [](const Tensor& x) { return at::atan(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy / (ops::square(x) + 1.0); }},
    {"sinh", [](const Tensor& x) { return at::sinh(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy * ops::cosh(x); }},
    {"cosh", [](const Tensor& x) { return at::cosh(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy * ops::sinh(x); }},
    {"arcsinh", [](const Tensor& x) { return at::asinh(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy * ops::rsqrt(ops::square(x) + 1.0); }},
    {"arccosh", [](const Tensor& x) { return at::acosh(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy * ops::rsqrt(ops::square(x) - 1.0); }, 1.2,
     3},
    {"arctanh", [](const Tensor& x) { return at::atanh(x); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy / (-ops::square(x) + 1.0); }, -0.8, 0.8},
    {"tanh", [](const Tensor& x) { return at::tanh(x); }, y_saved,
     [](const D&, const D& y, const D& dy) { return tanh_grad(dy, y); }},
    {"erf", [](const Tensor& x) { return at::erf(x); }, x_saved,
     [](const D& x, const D&, const D& dy) {
       return dy * ops::exp(-ops::square(x)) * 1.1283791670955126;  // 2/sqrt(pi)
     }},
    {"erfc", [](const Tensor& x) { return at::erfc(x); }, x_saved,
     [](const D& x, const D&, const D& dy) {
       return dy * ops::exp(-ops::square(x)) * -1.1283791670955126;
     }},
    {"erfinv", [](const Tensor& x) { return at::erfinv(x); }, y_saved,
     [](const D&, const D& y, const D& dy) {
       return dy * ops::exp(ops::square(y)) * 0.886226925452758;  // sqrt(pi)/2
     },
     -0.8, 0.8},
    {"sigmoid", [](const Tensor& x) { return at::sigmoid(x); }, y_saved,
     [](const D&, const D& y, const D& dy) { return sigmoid_grad(dy, y); }},
    {"relu", [](const Tensor& x) { return at::relu(x); }, y_saved,
     [](const D&, const D& y, const D& dy) { return relu_grad(dy, y); }},
    {"softplus", [](const Tensor& x) { return at::softplus(x, 1, 30); }, x_saved,
     [](const D& x, const D&, const D& dy) { return dy * ops::sigmoid(x); }},
    {"floor", [](const Tensor& x) { return at::floor(x); }, nothing_saved, nullptr},
    {"ceil", [](const Tensor& x) { return at::ceil(x); }, nothing_saved, nullptr},
    {"round", [](const Tensor& x) { return at::round(x); }, nothing_saved, nullptr},
    {"trunc", [](const Tensor& x) { return at::trunc(x); }, nothing_saved, nullptr},
    {"isnan", [](const Tensor& x) { return at::isnan(x); }, nothing_saved, nullptr, -2, 2, false,
     Types::any, true},
    {"isinf", [](const Tensor& x) { return at::isinf(x); }, nothing_saved, nullptr, -2, 2, false,
     Types::any, true},
    {"is_finite", [](const Tensor& x) { return at::isfinite(x); }, nothing_saved, nullptr, -2, 2,
     false, Types::any, true},
    {"logical_not", [](const Tensor& x) { return at::logical_not(x); }, nothing_saved, nullptr, 0,
     2, false, Types::boolean, true},
    {"bitwise_not", [](const Tensor& x) { return at::bitwise_not(x); }, nothing_saved, nullptr, -5,
     5, false, Types::integer},
};
constexpr size_t unary_count = std::size(unary_rows);

constexpr size_t unary_row(std::string_view name) { return find_row(unary_rows, name); }

template <size_t Row>
struct UnaryOp {
  static constexpr const UnaryRow& row = unary_rows[Row];
  static constexpr std::string_view name = row.name;
  static constexpr Saves saves = row.saves;
  static constexpr bool stops_gradient = row.gradient == nullptr;

  auto attributes() const { return std::tuple<>(); }

  Specs infer(const Specs& in) const {
    if (row.types == Types::floating) check_floating(name, in[0]);
    if (row.types == Types::integer) check_integer(name, in[0]);
    if (row.types == Types::any && !row.to_bool) check_not_bool(name, in[0]);
    return {{in[0].shape, row.to_bool ? at::kBool : in[0].dtype}};
  }
  Rule rule(const Specs& in) const {
    Rule rule = broadcast_rule(in);
    if (row.linear) rule.passing(Passes::sums);
    return rule;
  }
  Tensors forward(const LocalArgs& in) const { return {row.forward(in[0])}; }

  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const
      requires(unary_rows[Row].gradient != nullptr) {
    return {row.gradient(saved.in(0), saved.out(0), dy[0])};
  }
  static Samples<UnaryOp> samples() {
    const at::ScalarType type = row.types == Types::boolean   ? at::kBool
                                : row.types == Types::integer ? at::kLong
                                                              : at::kDouble;
    return {{{{{3, 5}, type, row.lo, row.hi}}}, {{{{}, type, row.lo, row.hi}}}};
  }
};

template <size_t... Row>
bool register_unary(std::index_sequence<Row...>) {
  return (register_op(op_info<UnaryOp<Row>>()) && ...);
}
[[maybe_unused]] const bool unary_registered =
    register_unary(std::make_index_sequence<unary_count>());

}  // namespace

namespace ops {

DTensor neg(const D& x) { return run_op(UnaryOp<unary_row("neg")>{}, {x}); }
DTensor abs(const D& x) { return run_op(UnaryOp<unary_row("abs")>{}, {x}); }
DTensor sign(const D& x) { return run_op(UnaryOp<unary_row("sign")>{}, {x}); }
DTensor exp(const D& x) { return run_op(UnaryOp<unary_row("exp")>{}, {x}); }
DTensor exp2(const D& x) { return run_op(UnaryOp<unary_row("exp2")>{}, {x}); }
DTensor expm1(const D& x) { return run_op(UnaryOp<unary_row("expm1")>{}, {x}); }
DTensor log(const D& x) { return run_op(UnaryOp<unary_row("log")>{}, {x}); }
DTensor log1p(const D& x) { return run_op(UnaryOp<unary_row("log1p")>{}, {x}); }
DTensor log2(const D& x) { return run_op(UnaryOp<unary_row("log2")>{}, {x}); }
DTensor log10(const D& x) { return run_op(UnaryOp<unary_row("log10")>{}, {x}); }
DTensor sqrt(const D& x) { return run_op(UnaryOp<unary_row("sqrt")>{}, {x}); }
DTensor rsqrt(const D& x) { return run_op(UnaryOp<unary_row("rsqrt")>{}, {x}); }
DTensor square(const D& x) { return run_op(UnaryOp<unary_row("square")>{}, {x}); }
DTensor reciprocal(const D& x) { return run_op(UnaryOp<unary_row("reciprocal")>{}, {x}); }
DTensor sin(const D& x) { return run_op(UnaryOp<unary_row("sin")>{}, {x}); }
DTensor cos(const D& x) { return run_op(UnaryOp<unary_row("cos")>{}, {x}); }
DTensor tan(const D& x) { return run_op(UnaryOp<unary_row("tan")>{}, {x}); }
DTensor arcsin(const D& x) { return run_op(UnaryOp<unary_row("arcsin")>{}, {x}); }
DTensor arccos(const D& x) { return run_op(UnaryOp<unary_row("arccos")>{}, {x}); }
DTensor arctan(const D& x) { return run_op(UnaryOp<unary_row("arctan")>{}, {x}); }
DTensor sinh(const D& x) { return run_op(UnaryOp<unary_row("sinh")>{}, {x}); }
DTensor cosh(const D& x) { return run_op(UnaryOp<unary_row("cosh")>{}, {x}); }
DTensor tanh(const D& x) { return run_op(UnaryOp<unary_row("tanh")>{}, {x}); }
DTensor arcsinh(const D& x) { return run_op(UnaryOp<unary_row("arcsinh")>{}, {x}); }
DTensor arccosh(const D& x) { return run_op(UnaryOp<unary_row("arccosh")>{}, {x}); }
DTensor arctanh(const D& x) { return run_op(UnaryOp<unary_row("arctanh")>{}, {x}); }
DTensor erf(const D& x) { return run_op(UnaryOp<unary_row("erf")>{}, {x}); }
DTensor erfc(const D& x) { return run_op(UnaryOp<unary_row("erfc")>{}, {x}); }
DTensor erfinv(const D& x) { return run_op(UnaryOp<unary_row("erfinv")>{}, {x}); }
DTensor sigmoid(const D& x) { return run_op(UnaryOp<unary_row("sigmoid")>{}, {x}); }
DTensor relu(const D& x) { return run_op(UnaryOp<unary_row("relu")>{}, {x}); }
DTensor softplus(const D& x) { return run_op(UnaryOp<unary_row("softplus")>{}, {x}); }
DTensor floor(const D& x) { return run_op(UnaryOp<unary_row("floor")>{}, {x}); }
DTensor ceil(const D& x) { return run_op(UnaryOp<unary_row("ceil")>{}, {x}); }
DTensor round(const D& x) { return run_op(UnaryOp<unary_row("round")>{}, {x}); }
DTensor trunc(const D& x) { return run_op(UnaryOp<unary_row("trunc")>{}, {x}); }
DTensor isnan(const D& x) { return run_op(UnaryOp<unary_row("isnan")>{}, {x}); }
DTensor isinf(const D& x) { return run_op(UnaryOp<unary_row("isinf")>{}, {x}); }
DTensor is_finite(const D& x) { return run_op(UnaryOp<unary_row("is_finite")>{}, {x}); }
DTensor logical_not(const D& x) { return run_op(UnaryOp<unary_row("logical_not")>{}, {x}); }
DTensor bitwise_not(const D& x) { return run_op(UnaryOp<unary_row("bitwise_not")>{}, {x}); }

}  // namespace ops
}  // namespace tessera
