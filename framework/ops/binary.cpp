#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/elementwise_grad.hpp>
#include <tessera/framework/ops/internal/elementwise_rows.hpp>
#include <tessera/framework/tensor/internal/deferred_checks.hpp>

namespace tessera {

using namespace detail;

namespace {

using at::Tensor;
using D = DTensor;

constexpr Saves both = inputs(0, 1);
constexpr Saves both_and_y = {both.in, outputs(0).out};

/// Returns dy where the mask is true, else 0.
D masked(const D& dy, const D& mask) { return dy * ops::cast(mask, dy.dtype()); }

/// Returns the integer multiple / b, rounded, as it is not exact in float16 and bfloat16.
D quotient(const D& multiple, const D& b) { return ops::round(multiple / b); }

[[noreturn]] void fail_division(int64_t) {
  throw ConfigError("integer division", "divisors are not 0", "0", "correct the divisor");
}

/// Returns the divisor b. Throws ConfigError, in place of ATen's own error, if integers are divided
/// by 0. For a GPU it is thrown when this thread next reads from that GPU; until then zeros in b
/// are replaced by 1.
Tensor divisor(const Tensor& b) {
  if (!at::isIntegralType(b.scalar_type(), false)) return b;
  if (!b.is_cpu()) {
    const Tensor zeros = b.eq(0);
    deferred_check(b.device(), fail_division).masked_fill_(zeros.any(), 0);
    return b.masked_fill(zeros, 1);
  }
  if (!b.all().item<bool>()) fail_division(0);
  return b;
}

// name, forward, saved for the gradients, gradient of a, of b, sample range, linear, returns bool,
// sample dtype, floating dtypes only, integers only
constexpr BinaryRow binary_rows[] = {
    {"add", [](const Tensor& a, const Tensor& b) { return at::add(a, b); }, nothing_saved,
     [](const D&, const D&, const D&, const D& dy) { return dy; },
     [](const D&, const D&, const D&, const D& dy) { return dy; }, -2, 2, true},
    {"sub", [](const Tensor& a, const Tensor& b) { return at::sub(a, b); }, nothing_saved,
     [](const D&, const D&, const D&, const D& dy) { return dy; },
     [](const D&, const D&, const D&, const D& dy) { return -dy; }, -2, 2, true},
    {"mul", [](const Tensor& a, const Tensor& b) { return at::mul(a, b); }, both,
     [](const D&, const D& b, const D&, const D& dy) { return dy * b; },
     [](const D& a, const D&, const D&, const D& dy) { return dy * a; }},
    {"div", [](const Tensor& a, const Tensor& b) { return at::div(a, b); }, both,
     [](const D&, const D& b, const D&, const D& dy) { return dy / b; },
     [](const D& a, const D& b, const D&, const D& dy) { return -(dy * a / ops::square(b)); }, 0.4,
     2, false, false, at::kDouble, true},
    {"maximum", [](const Tensor& a, const Tensor& b) { return at::maximum(a, b); }, both,
     [](const D& a, const D& b, const D&, const D& dy) {
       return masked(dy, ops::greater_equal(a, b));
     },
     [](const D& a, const D& b, const D&, const D& dy) { return masked(dy, ops::less(a, b)); }},
    {"minimum", [](const Tensor& a, const Tensor& b) { return at::minimum(a, b); }, both,
     [](const D& a, const D& b, const D&, const D& dy) {
       return masked(dy, ops::less_equal(a, b));
     },
     [](const D& a, const D& b, const D&, const D& dy) { return masked(dy, ops::greater(a, b)); }},
    {"pow", [](const Tensor& a, const Tensor& b) { return at::pow(a, b); }, both,
     [](const D& a, const D& b, const D&, const D& dy) { return dy * b * ops::pow(a, b - 1.0); },
     [](const D& a, const D& b, const D&, const D& dy) {
       return dy * ops::pow(a, b) * ops::log(a);
     },
     0.4, 2, false, false, at::kDouble, true},
    {"arctan2", [](const Tensor& a, const Tensor& b) { return at::atan2(a, b); }, both,
     [](const D& a, const D& b, const D&, const D& dy) {
       return dy * b / (ops::square(a) + ops::square(b));
     },
     [](const D& a, const D& b, const D&, const D& dy) {
       return -(dy * a / (ops::square(a) + ops::square(b)));
     },
     0.4, 2, false, false, at::kDouble, true},
    {"hypot", [](const Tensor& a, const Tensor& b) { return at::hypot(a, b); }, both_and_y,
     [](const D& a, const D&, const D& y, const D& dy) { return dy * a / y; },
     [](const D&, const D& b, const D& y, const D& dy) { return dy * b / y; }, 0.4, 2, false, false,
     at::kDouble, true},
    {"logaddexp", [](const Tensor& a, const Tensor& b) { return at::logaddexp(a, b); }, both_and_y,
     [](const D& a, const D&, const D& y, const D& dy) { return dy * ops::exp(a - y); },
     [](const D&, const D& b, const D& y, const D& dy) { return dy * ops::exp(b - y); }, -2, 2,
     false, false, at::kDouble, true},
    {"relu_grad",
     [](const Tensor& dy, const Tensor& y) { return at::threshold_backward(dy, y, 0); }, inputs(1),
     [](const D&, const D& y, const D&, const D& g) { return relu_grad(g, y); }, nullptr},
    {"tanh_grad", [](const Tensor& dy, const Tensor& y) { return at::tanh_backward(dy, y); }, both,
     [](const D&, const D& y, const D&, const D& g) { return tanh_grad(g, y); },
     [](const D& dy, const D& y, const D&, const D& g) { return g * dy * y * -2.0; }},
    {"sigmoid_grad", [](const Tensor& dy, const Tensor& y) { return at::sigmoid_backward(dy, y); },
     both, [](const D&, const D& y, const D&, const D& g) { return sigmoid_grad(g, y); },
     [](const D& dy, const D& y, const D&, const D& g) { return g * dy * (y * -2.0 + 1.0); }},
    {"floor_div", [](const Tensor& a, const Tensor& b) { return at::floor_divide(a, divisor(b)); },
     nothing_saved, nullptr, nullptr, 1, 9, false, false, at::kLong},
    {"remainder", [](const Tensor& a, const Tensor& b) { return at::remainder(a, divisor(b)); },
     both_and_y, [](const D&, const D&, const D&, const D& dy) { return dy; },
     [](const D& a, const D& b, const D& y, const D& dy) { return -(dy * quotient(a - y, b)); }, 1,
     9},
    {"fmod", [](const Tensor& a, const Tensor& b) { return at::fmod(a, divisor(b)); }, both_and_y,
     [](const D&, const D&, const D&, const D& dy) { return dy; },
     [](const D& a, const D& b, const D& y, const D& dy) { return -(dy * quotient(a - y, b)); }, 1,
     9},
    {"equal", [](const Tensor& a, const Tensor& b) { return at::eq(a, b); }, nothing_saved, nullptr,
     nullptr, 0, 3, false, true, at::kLong},
    {"not_equal", [](const Tensor& a, const Tensor& b) { return at::ne(a, b); }, nothing_saved,
     nullptr, nullptr, 0, 3, false, true, at::kLong},
    {"less", [](const Tensor& a, const Tensor& b) { return at::lt(a, b); }, nothing_saved, nullptr,
     nullptr, -2, 2, false, true},
    {"less_equal", [](const Tensor& a, const Tensor& b) { return at::le(a, b); }, nothing_saved,
     nullptr, nullptr, 0, 3, false, true, at::kLong},
    {"greater", [](const Tensor& a, const Tensor& b) { return at::gt(a, b); }, nothing_saved,
     nullptr, nullptr, -2, 2, false, true},
    {"greater_equal", [](const Tensor& a, const Tensor& b) { return at::ge(a, b); }, nothing_saved,
     nullptr, nullptr, 0, 3, false, true, at::kLong},
    {"logical_and", [](const Tensor& a, const Tensor& b) { return at::logical_and(a, b); },
     nothing_saved, nullptr, nullptr, 0, 2, false, true, at::kBool},
    {"logical_or", [](const Tensor& a, const Tensor& b) { return at::logical_or(a, b); },
     nothing_saved, nullptr, nullptr, 0, 2, false, true, at::kBool},
    {"logical_xor", [](const Tensor& a, const Tensor& b) { return at::logical_xor(a, b); },
     nothing_saved, nullptr, nullptr, 0, 2, false, true, at::kBool},
    {"bitwise_and", [](const Tensor& a, const Tensor& b) { return at::bitwise_and(a, b); },
     nothing_saved, nullptr, nullptr, 0, 9, false, false, at::kLong, false, true},
    {"bitwise_or", [](const Tensor& a, const Tensor& b) { return at::bitwise_or(a, b); },
     nothing_saved, nullptr, nullptr, 0, 9, false, false, at::kLong, false, true},
    {"bitwise_xor", [](const Tensor& a, const Tensor& b) { return at::bitwise_xor(a, b); },
     nothing_saved, nullptr, nullptr, 0, 9, false, false, at::kLong, false, true},
    {"bitwise_left_shift",
     [](const Tensor& a, const Tensor& b) { return at::bitwise_left_shift(a, b); }, nothing_saved,
     nullptr, nullptr, 0, 9, false, false, at::kLong, false, true},
    {"bitwise_right_shift",
     [](const Tensor& a, const Tensor& b) { return at::bitwise_right_shift(a, b); }, nothing_saved,
     nullptr, nullptr, 0, 9, false, false, at::kLong, false, true},
};
constexpr size_t binary_count = std::size(binary_rows);

constexpr size_t binary_row(std::string_view name) { return find_row(binary_rows, name); }

template <size_t Row>
struct BinaryOp {
  static constexpr const BinaryRow& row = binary_rows[Row];
  static constexpr std::string_view name = row.name;
  static constexpr Saves saves = row.saves;
  static constexpr bool stops_gradient = row.gradient_a == nullptr;

  auto attributes() const { return std::tuple<>(); }

  Specs infer(const Specs& in) const {
    check_same_dtype(name, in);
    if (!row.to_bool) check_not_bool(name, in[0]);
    if (row.floating) check_floating(name, in[0]);
    if (row.integer) check_integer(name, in[0]);
    return {{broadcast_shape(name, in), row.to_bool ? at::kBool : in[0].dtype}};
  }
  Rule rule(const Specs& in) const {
    Rule rule = broadcast_rule(in);
    if (row.linear) rule.passing(Passes::sums, {0, 1});
    return rule;
  }
  Tensors forward(const LocalArgs& in) const { return {row.forward(in[0], in[1])}; }

  Grads gradient(const Saved& saved, const Cotangents& dy, Needs needs) const
      requires(binary_rows[Row].gradient_a != nullptr) {
    Grads grads(2);
    const D &a = saved.in(0), &b = saved.in(1), &y = saved.out(0);
    if (needs[0]) grads[0] = sum_to(row.gradient_a(a, b, y, dy[0]), saved.shape(0));
    if (needs[1] && row.gradient_b) {
      grads[1] = sum_to(row.gradient_b(a, b, y, dy[0]), saved.shape(1));
    }
    return grads;
  }
  static Samples<BinaryOp> samples() {
    const auto of = [](Shape a, Shape b) {
      SampleInput left{a, row.sample, row.lo, row.hi}, right{b, row.sample, row.lo, row.hi};
      right.differentiable = row.gradient_b != nullptr;
      return Sample<BinaryOp>{{left, right}};
    };
    return {of({3, 5}, {3, 5}), of({4, 3}, {3}), of({2, 1, 3}, {4, 1}), of({5}, {})};
  }
};

template <size_t... Row>
bool register_binary(std::index_sequence<Row...>) {
  return (register_op(op_info<BinaryOp<Row>>()) && ...);
}
[[maybe_unused]] const bool binary_registered =
    register_binary(std::make_index_sequence<binary_count>());

template <size_t Row>
D run_binary(const D& a, const D& b) {
  if (a.defined() && b.defined() && a.dtype() == b.dtype()) return run_op(BinaryOp<Row>{}, {a, b});
  const auto [x, y] = in_floating_dtype(a, b);
  return run_op(BinaryOp<Row>{}, {x, y});
}

}  // namespace

namespace ops {

DTensor add(const D& a, const D& b) { return run_binary<binary_row("add")>(a, b); }
DTensor sub(const D& a, const D& b) { return run_binary<binary_row("sub")>(a, b); }
DTensor mul(const D& a, const D& b) { return run_binary<binary_row("mul")>(a, b); }
DTensor div(const D& a, const D& b) { return run_binary<binary_row("div")>(a, b); }
DTensor maximum(const D& a, const D& b) { return run_binary<binary_row("maximum")>(a, b); }
DTensor minimum(const D& a, const D& b) { return run_binary<binary_row("minimum")>(a, b); }
DTensor pow(const D& a, const D& b) { return run_binary<binary_row("pow")>(a, b); }
DTensor floor_div(const D& a, const D& b) { return run_binary<binary_row("floor_div")>(a, b); }
DTensor remainder(const D& a, const D& b) { return run_binary<binary_row("remainder")>(a, b); }
DTensor fmod(const D& a, const D& b) { return run_binary<binary_row("fmod")>(a, b); }
DTensor arctan2(const D& a, const D& b) { return run_binary<binary_row("arctan2")>(a, b); }
DTensor hypot(const D& a, const D& b) { return run_binary<binary_row("hypot")>(a, b); }
DTensor logaddexp(const D& a, const D& b) { return run_binary<binary_row("logaddexp")>(a, b); }
DTensor bitwise_and(const D& a, const D& b) { return run_binary<binary_row("bitwise_and")>(a, b); }
DTensor bitwise_or(const D& a, const D& b) { return run_binary<binary_row("bitwise_or")>(a, b); }
DTensor bitwise_xor(const D& a, const D& b) { return run_binary<binary_row("bitwise_xor")>(a, b); }
DTensor bitwise_left_shift(const D& a, const D& b) {
  return run_binary<binary_row("bitwise_left_shift")>(a, b);
}
DTensor bitwise_right_shift(const D& a, const D& b) {
  return run_binary<binary_row("bitwise_right_shift")>(a, b);
}
DTensor equal(const D& a, const D& b) { return run_binary<binary_row("equal")>(a, b); }
DTensor not_equal(const D& a, const D& b) { return run_binary<binary_row("not_equal")>(a, b); }
DTensor less(const D& a, const D& b) { return run_binary<binary_row("less")>(a, b); }
DTensor less_equal(const D& a, const D& b) { return run_binary<binary_row("less_equal")>(a, b); }
DTensor greater(const D& a, const D& b) { return run_binary<binary_row("greater")>(a, b); }
DTensor greater_equal(const D& a, const D& b) {
  return run_binary<binary_row("greater_equal")>(a, b);
}
DTensor logical_and(const D& a, const D& b) {
  return run_op(BinaryOp<binary_row("logical_and")>{}, {a, b});
}
DTensor logical_or(const D& a, const D& b) {
  return run_op(BinaryOp<binary_row("logical_or")>{}, {a, b});
}
DTensor logical_xor(const D& a, const D& b) {
  return run_op(BinaryOp<binary_row("logical_xor")>{}, {a, b});
}

}  // namespace ops

DTensor detail::relu_grad(const D& dy, const D& y) {
  return run_op(BinaryOp<binary_row("relu_grad")>{}, {dy, y});
}
DTensor detail::tanh_grad(const D& dy, const D& y) {
  return run_op(BinaryOp<binary_row("tanh_grad")>{}, {dy, y});
}
DTensor detail::sigmoid_grad(const D& dy, const D& y) {
  return run_op(BinaryOp<binary_row("sigmoid_grad")>{}, {dy, y});
}

}  // namespace tessera
