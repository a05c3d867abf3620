#include <tessera/framework/ops/cross_entropy.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/class_labels.hpp>
#include <tessera/framework/ops/internal/deferred_logits.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/ops/softmax.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr std::string_view sparse_name = "sparse_softmax_cross_entropy";

/// logits (…, c), labels (…) -> (…): the labels' axes pass; the class axis is a factor of `kind`.
Rule class_rule(int64_t label_rank, FactorKind kind) {
  Rule rule;
  std::vector<int> labels;
  for (int a = 0; a < label_rank; ++a) labels.push_back(a);
  std::vector<int> logits = labels;
  logits.push_back(int(label_rank));
  rule.factors.assign(labels.size(), FactorKind::pass);
  rule.factors.push_back(kind);
  rule.in = {logits, labels};
  rule.out = {labels};
  return rule;
}

/// Returns the spec of the loss: the labels' shape and the logits' dtype.
Specs infer_loss(const Specs& in) {
  check_floating(sparse_name, in[0]);
  check_index_dtype(sparse_name, "labels", in[1]);
  const Shape& x = in[0].shape;
  if (x.empty() || Shape(x.begin(), x.end() - 1) != in[1].shape) {
    throw ShapeError(std::string(sparse_name), "logits (..., c) go with labels (...)",
                     to_string(x) + " and " + to_string(in[1].shape), "reshape the labels");
  }
  if (x.back() == 0) {
    throw ShapeError(std::string(sparse_name), "there is at least one class", to_string(x),
                     "give the last layer a unit for each class");
  }
  return {{in[1].shape, in[0].dtype}};
}

/// Returns the elements of x (…, c) at the labels (…); zeros if there are no classes.
DTensor at_labels(const DTensor& x, const DTensor& labels) {
  if (x.shape().back() == 0) return ops::sum(x, {-1});
  return ops::squeeze(ops::take_along_axis(x, ops::expand_dims(labels, -1), -1), {-1});
}

/// (softmax(logits) - one_hot(labels)) dy.
struct SparseCrossEntropyGradOp {
  static constexpr std::string_view name = "sparse_softmax_cross_entropy_grad";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const {
    Rule rule = class_rule(in[1].rank(), FactorKind::replicated);
    rule.in.push_back(rule.in[1]);
    rule.out = {rule.in[0]};
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    at::Tensor dx = at::_softmax(in[0], -1, false);
    const at::Tensor label = clamped_indices(in[1], in[0].size(-1)).unsqueeze(-1);
    dx.scatter_add_(-1, label, at::full({}, -1, dx.options()).expand(label.sizes()));
    return {dx.mul_(in[2].unsqueeze(-1))};
  }
  static constexpr Saves saves = inputs(0, 1, 2);
  Grads gradient(const Saved& saved, const Cotangents& cotangents, Needs needs) const {
    const DTensor &logits = saved.in(0), &dy = saved.in(2);
    const DTensor g = widened(cotangents[0]);
    // Without classes p is empty, and each sum is 0.
    const DTensor p = logits.shape().back() == 0 ? g : ops::softmax(widened(logits), -1);
    Grads grads(3);
    if (needs[0]) {
      const DTensor weighted = p * g * ops::expand_dims(widened(dy), -1);
      grads[0] = ops::cast(weighted - p * ops::sum(weighted, {-1}, true), logits.dtype());
    }
    if (needs[2]) {
      grads[2] = ops::cast(ops::sum(p * g, {-1}) - at_labels(g, saved.in(1)), dy.dtype());
    }
    return grads;
  }
  static Samples<SparseCrossEntropyGradOp> samples() {
    return {{{{{3, 5}}, {{3}, at::kLong, 0, 5}, {{3}}}},
            {{{{2, 3, 4}}, {{2, 3}, at::kLong, 0, 4}, {{2, 3}}}}};
  }
};

/// Fused loss for a class axis that is not sharded.
struct SparseCrossEntropyOp {
  static constexpr std::string_view name = sparse_name;
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return infer_loss(in); }
  Rule rule(const Specs& in) const { return class_rule(in[1].rank(), FactorKind::replicated); }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor labels =
        checked_indices(name, "labels", in[1], in.spec(0).shape.back(), in.ranges(1));
    const at::Tensor log_p = at::_log_softmax(in[0], -1, false);
    return {log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1).neg_()};
  }
  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {run_op(SparseCrossEntropyGradOp{}, {saved.in(0), saved.in(1), dy[0]}), DTensor()};
  }
  static Samples<SparseCrossEntropyOp> samples() {
    return {{{{{3, 5}}, {{3}, at::kLong, 0, 5}}},
            {{{{7}}, {{}, at::kLong, 0, 7}}},
            {{{{2, 3, 4}}, {{2, 3}, at::kLong, 0, 4}}},
            {{{{4, 1}}, {{4}, at::kLong, 0, 1}}},
            {{{{0, 3}}, {{0}, at::kLong, 0, 3}}}};
  }
};

/// exp(logits - top) dy_sum, with dy_picked added at the label. Fused, so that no second tensor has
/// the class axis.
struct ClassTermsGradOp {
  static constexpr std::string_view name = "class_terms_grad";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const {
    Rule rule = class_rule(in[1].rank(), FactorKind::pass);
    rule.out = {rule.in[0]};
    rule.in.resize(5, rule.in[1]);
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const LocalLabels labels(in[1], in.range(0, in[0].dim() - 1));
    at::Tensor dx = in[0].sub(in[2].unsqueeze(-1)).exp_().mul_(in[3].unsqueeze(-1));
    const at::Tensor picked = in[4].unsqueeze(-1);
    return {dx.scatter_add_(-1, labels.index,
                            at::where(labels.inside, picked, at::zeros_like(picked)))};
  }
  static constexpr Saves saves = inputs(0, 1, 2, 3);
  Grads gradient(const Saved& saved, const Cotangents& cotangents, Needs needs) const {
    const DTensor g = widened(cotangents[0]);
    const DTensor shifted = widened(saved.in(0)) - ops::expand_dims(widened(saved.in(2)), -1);
    const DTensor weighted = g * ops::exp(shifted);
    const DTensor dx = weighted * ops::expand_dims(widened(saved.in(3)), -1);
    Grads grads(5);
    if (needs[0]) grads[0] = dx;
    if (needs[2]) grads[2] = -ops::sum(dx, {-1});
    if (needs[3]) grads[3] = ops::sum(weighted, {-1});
    if (needs[4]) grads[4] = at_labels(g, saved.in(1));
    for (DTensor& grad : grads) {
      if (grad.defined()) grad = ops::cast(grad, saved.in(0).dtype());
    }
    return grads;
  }
  static Samples<ClassTermsGradOp> samples() {
    return {{{{{3, 5}}, {{3}, at::kLong, 0, 5}, {{3}}, {{3}}, {{3}}}},
            {{{{2, 3, 4}}, {{2, 3}, at::kLong, 0, 4}, {{2, 3}}, {{2, 3}}, {{2, 3}}}}};
  }
};

/// logits (…, c), labels (…) and the constant top (…) -> sum(exp(logits - top)) and
/// logits[label] - top. Both are partial sums over the shards of the class axis.
struct ClassTermsOp {
  static constexpr std::string_view name = "class_terms";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const {
    const Spec out = infer_loss(in)[0];
    return {out, out};
  }
  Rule rule(const Specs& in) const {
    Rule rule = class_rule(in[1].rank(), FactorKind::reduce);
    rule.in.push_back(rule.in[1]);
    rule.out.push_back(rule.out[0]);
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const LocalLabels labels(
        checked_indices(sparse_name, "labels", in[1], in.spec(0).shape.back(), in.ranges(1)),
        in.range(0, in[0].dim() - 1));
    at::Tensor shifted = in[0].sub(in[2].unsqueeze(-1));
    at::Tensor picked = shifted.gather(-1, labels.index);
    picked = picked.masked_fill_(labels.inside.logical_not(), 0).squeeze(-1);
    return {shifted.exp_().sum(-1), picked};
  }
  static constexpr Saves saves = inputs(0, 1, 2);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    const auto or_zeros = [&](size_t term) {
      if (dy[term].defined()) return dy[term];
      const Sharding& loss = saved.sharding(1);
      return filled(loss.shape, 0, saved.sharding(0).dtype, loss.layout.resolved());
    };
    return {run_op(ClassTermsGradOp{},
                   {saved.in(0), saved.in(1), saved.in(2), or_zeros(0), or_zeros(1)}),
            DTensor(), DTensor()};
  }
  static Samples<ClassTermsOp> samples() {
    const auto of = [](const Shape& shape) {
      const Shape rows(shape.begin(), shape.end() - 1);
      return Sample<ClassTermsOp>{{{shape},
                                   {rows, at::kLong, 0, double(shape.back())},
                                   {.shape = rows, .differentiable = false}}};
    };
    return {of({3, 5}), of({7}), of({2, 3, 4}), of({4, 2})};
  }
};

/// max(x, 0) - x z + log1p(exp(-|x|)).
struct SigmoidCrossEntropyOp {
  static constexpr std::string_view name = "sigmoid_cross_entropy";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    check_same_dtype(name, in);
    if (in[0].shape != in[1].shape) {
      throw ShapeError("sigmoid_cross_entropy", "logits and labels have one shape",
                       to_string(in[0].shape) + " and " + to_string(in[1].shape),
                       "reshape the labels");
    }
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return broadcast_rule(in); }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor& x = in[0];
    return {at::relu(x).sub_(x.mul(in[1])).add_(x.abs().neg_().exp_().log1p_())};
  }
  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs needs) const {
    Grads grads(2);
    if (needs[0]) grads[0] = dy[0] * (ops::sigmoid(saved.in(0)) - saved.in(1));
    if (needs[1]) grads[1] = -(dy[0] * saved.in(0));
    return grads;
  }
  static Samples<SigmoidCrossEntropyOp> samples() {
    return {{{{{3, 5}, at::kDouble, -3, 3}, {{3, 5}, at::kDouble, 0, 1}}},
            {{{{}}, {{}, at::kDouble, 0, 1}}}};
  }
};

TESSERA_REGISTER_OP(SparseCrossEntropyGradOp);
TESSERA_REGISTER_OP(SparseCrossEntropyOp);
TESSERA_REGISTER_OP(ClassTermsGradOp);
TESSERA_REGISTER_OP(ClassTermsOp);
TESSERA_REGISTER_OP(SigmoidCrossEntropyOp);

}  // namespace

namespace ops {

DTensor sparse_softmax_cross_entropy(const DTensor& logits, const DTensor& labels) {
  const DTensor index = to_int64_indices(labels);
  if (const DeferredLogits* const later = large_deferred_logits(logits)) {
    const CommLabel label(later->label);
    return linear_softmax_cross_entropy(later->x, later->kernel, index, later->bias,
                                        later->classes);
  }
  const int64_t axis = logits.rank() - 1;
  if (axis < 0 || logits.layout().num_shards(axis) == 1) {
    return run_op(SparseCrossEntropyOp{}, {logits, index});
  }
  infer_loss({{logits.shape(), logits.dtype()}, {index.shape(), index.dtype()}});
  // As in the fused operation, float16 and bfloat16 are summed in float32.
  const DTensor wide = widened(logits);
  const DTensor top = max(stop_gradient(wide), {axis});
  const ClassTermsOp op;
  const std::vector<DTensor> terms = dispatch(op_info<ClassTermsOp>(), &op, attribute_hash(op),
                                              std::vector<DTensor>{wide, index, top});
  return cast(log(terms[0]) - terms[1], logits.dtype());
}

DTensor softmax_cross_entropy(const DTensor& logits, const DTensor& labels) {
  if (logits.rank() == 0 || logits.shape() != labels.shape()) {
    throw ShapeError("softmax_cross_entropy", "logits and labels have one shape (..., c)",
                     to_string(logits.shape()) + " and " + to_string(labels.shape()),
                     "one-hot encode integer labels, or use sparse_softmax_cross_entropy");
  }
  return -sum(labels * log_softmax(logits), {-1});
}

DTensor sigmoid_cross_entropy(const DTensor& logits, const DTensor& labels) {
  return run_op(SigmoidCrossEntropyOp{}, {logits, labels});
}

}  // namespace ops
}  // namespace tessera
