#include <tessera/framework/ops/softmax.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Gradient of softmax or log_softmax from dy and the result y.
template <bool Log>
struct SoftmaxGradOp {
  static constexpr std::string_view name = Log ? "log_softmax_grad" : "softmax_grad";
  int64_t axis = -1;
  auto attributes() const { return std::tie(axis); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const { return unsharded_axis_rule(in, axis); }
  Tensors forward(const LocalArgs& in) const {
    const at::ScalarType dtype = in.spec(0).dtype;
    return {Log ? at::_log_softmax_backward_data(in[0], in[1], axis, dtype)
                : at::_softmax_backward_data(in[0], in[1], axis, dtype)};
  }
  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& cotangents, Needs needs) const {
    const DTensor g = widened(cotangents[0]), dy = widened(saved.in(0)), y = widened(saved.in(1));
    const auto row_sum = [&](const DTensor& x) { return ops::sum(x, {axis}, true); };
    Grads grads(2);
    if constexpr (Log) {
      const DTensor terms = g * ops::exp(y);
      if (needs[0]) grads[0] = g - row_sum(terms);
      if (needs[1]) grads[1] = -(terms * row_sum(dy));
    } else {
      if (needs[0]) grads[0] = run_op(*this, {g, y});
      if (needs[1]) grads[1] = g * (dy - row_sum(dy * y)) - dy * row_sum(g * y);
    }
    for (DTensor& grad : grads) {
      if (grad.defined()) grad = ops::cast(grad, saved.in(0).dtype());
    }
    return grads;
  }
  static Samples<SoftmaxGradOp> samples() {
    return {{{{{3, 5}}, {{3, 5}, at::kDouble, 0, 0.5}}, {1}},
            {{{{2, 3, 2}}, {{2, 3, 2}, at::kDouble, 0, 0.5}}, {1}}};
  }
};

/// Fused softmax or log_softmax along an axis that is not sharded.
template <bool Log>
struct SoftmaxOp {
  static constexpr std::string_view name = Log ? "log_softmax" : "softmax";
  int64_t axis = -1;
  auto attributes() const { return std::tie(axis); }
  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return unsharded_axis_rule(in, axis); }
  Tensors forward(const LocalArgs& in) const {
    return {Log ? at::_log_softmax(in[0], axis, false) : at::_softmax(in[0], axis, false)};
  }
  static constexpr Saves saves = outputs(0);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {run_op(SoftmaxGradOp<Log>{axis}, {dy[0], saved.out()})};
  }
  static Samples<SoftmaxOp> samples() {
    return {{{{{3, 5}}}, {1}},    {{{{4, 3}}}, {0}}, {{{{7}}}, {0}},
            {{{{2, 3, 4}}}, {1}}, {{{{3, 1}}}, {1}}, {{{{0, 4}}}, {1}}};
  }
};

using LogSoftmaxOp = SoftmaxOp<true>;
using PlainSoftmaxOp = SoftmaxOp<false>;
using LogSoftmaxGradOp = SoftmaxGradOp<true>;
using PlainSoftmaxGradOp = SoftmaxGradOp<false>;
TESSERA_REGISTER_OP(LogSoftmaxOp);
TESSERA_REGISTER_OP(PlainSoftmaxOp);
TESSERA_REGISTER_OP(LogSoftmaxGradOp);
TESSERA_REGISTER_OP(PlainSoftmaxGradOp);

bool needs_composition(const DTensor& x, int64_t axis) { return x.layout().num_shards(axis) > 1; }

}  // namespace

namespace ops {

DTensor softmax(const DTensor& x, int64_t axis) {
  const int64_t a = normalize_axis(axis, x.rank(), "softmax");
  if (!needs_composition(x, a)) return run_op(PlainSoftmaxOp{a}, {x});
  // As in ATen's kernel, float16 and bfloat16 are computed in float32.
  const DTensor wide = widened(x);
  const DTensor weight = exp(wide - max(stop_gradient(wide), {a}, true));
  return cast(weight / sum(weight, {a}, true), x.dtype());
}

DTensor log_softmax(const DTensor& x, int64_t axis) {
  const int64_t a = normalize_axis(axis, x.rank(), "log_softmax");
  if (!needs_composition(x, a)) return run_op(LogSoftmaxOp{a}, {x});
  const DTensor wide = widened(x);
  const DTensor shifted = wide - max(stop_gradient(wide), {a}, true);
  return cast(shifted - log(sum(exp(shifted), {a}, true)), x.dtype());
}

}  // namespace ops
}  // namespace tessera
