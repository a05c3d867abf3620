#include <tessera/framework/ops/cross_entropy.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/ops/softmax.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr std::string_view sparse_name = "sparse_softmax_cross_entropy";

/// logits (…, c), labels (…) -> (…): the labels' axes pass, the class axis is of a kind.
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

/// Shape of the labels, dtype of the logits.
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

/// (softmax(logits) - one_hot(labels)) dy.
struct SparseCrossEntropyGradOp {
  static constexpr std::string_view name = "sparse_softmax_cross_entropy_grad";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs& in) const {
    Rule rule = class_rule(in[1].rank(), FactorKind::whole);
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
  static Samples<SparseCrossEntropyGradOp> samples() {
    return {{{{{3, 5}}, {{3}, at::kLong, 0, 5}, {{3}}}},
            {{{{2, 3, 4}}, {{2, 3}, at::kLong, 0, 4}, {{2, 3}}}}};
  }
};

/// The fused form, for a class axis that is whole.
struct SparseCrossEntropyOp {
  static constexpr std::string_view name = sparse_name;
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return infer_loss(in); }
  Rule rule(const Specs& in) const { return class_rule(in[1].rank(), FactorKind::whole); }
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

/// Where labels lie in a shard of the class axis.
struct LocalLabels {
  LocalLabels(const at::Tensor& labels, Interval shard)
      : index(labels.sub(shard.lo).unsqueeze_(-1)),
        inside(index.ge(0).logical_and_(index.lt(shard.size()))) {
    index.clamp_(0, shard.size() - 1);
  }
  at::Tensor index;  ///< with a class axis of 1; some class of the shard where not inside
  at::Tensor inside;
};

/// dy at each label's class, else 0. The third input is a marker of the class axis.
struct PickGradOp {
  static constexpr std::string_view name = "pick_grad";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const {
    Spec out = in[0];
    out.shape.push_back(in[2].shape[0]);
    return {out};
  }
  Rule rule(const Specs& in) const {
    Rule rule = class_rule(in[1].rank(), FactorKind::pass);
    rule.out = {rule.in[0]};
    rule.in = {rule.in[1], rule.in[1], {int(in[1].rank())}};
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const LocalLabels labels(in[1], in.range(2, 0));
    std::vector<int64_t> shape = in[0].sizes().vec();
    shape.push_back(in.range(2, 0).size());
    at::Tensor dx = at::zeros(shape, in[0].options());
    const at::Tensor dy = in[0].unsqueeze(-1);
    return {dx.scatter_(-1, labels.index, at::where(labels.inside, dy, at::zeros_like(dy)))};
  }
  static Samples<PickGradOp> samples() {
    return {{{{{3}}, {{3}, at::kLong, 0, 5}, {{5}, at::kByte, 0, 1}}},
            {{{{2, 3}}, {{2, 3}, at::kLong, 0, 4}, {{4}, at::kByte, 0, 1}}}};
  }
};

/// x[…, label]; each shard of the class axis gives the labels it holds, and 0 for the others.
struct PickOp {
  static constexpr std::string_view name = "pick";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return infer_loss(in); }
  Rule rule(const Specs& in) const { return class_rule(in[1].rank(), FactorKind::reduce); }
  Tensors forward(const LocalArgs& in) const {
    const LocalLabels labels(
        checked_indices(sparse_name, "labels", in[1], in.spec(0).shape.back(), in.ranges(1)),
        in.range(0, in[0].dim() - 1));
    const at::Tensor picked = in[0].gather(-1, labels.index);
    return {picked.masked_fill_(labels.inside.logical_not(), 0).squeeze(-1)};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    const Sharding& x = saved.form(0);
    const int64_t axis = int64_t(x.shape.size()) - 1;
    const DTensor marker = axis_marker(x.shape.back(), x.layout.axis(axis), {dy[0], saved.in(1)});
    return {run_op(PickGradOp{}, {dy[0], saved.in(1), marker}), DTensor()};
  }
  static Samples<PickOp> samples() {
    return {{{{{3, 5}}, {{3}, at::kLong, 0, 5}}},
            {{{{7}}, {{}, at::kLong, 0, 7}}},
            {{{{2, 3, 4}}, {{2, 3}, at::kLong, 0, 4}}},
            {{{{4, 2}}, {{4}, at::kLong, 0, 2}}}};
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
TESSERA_REGISTER_OP(PickGradOp);
TESSERA_REGISTER_OP(PickOp);
TESSERA_REGISTER_OP(SigmoidCrossEntropyOp);

}  // namespace

namespace ops {

DTensor sparse_softmax_cross_entropy(const DTensor& logits, const DTensor& labels) {
  const DTensor index = as_indices(labels);
  const int64_t axis = logits.rank() - 1;
  if (axis < 0 || logits.layout().num_shards(axis) == 1) {
    return run_op(SparseCrossEntropyOp{}, {logits, index});
  }
  infer_loss({{logits.shape(), logits.dtype()}, {index.shape(), index.dtype()}});
  const DTensor shifted = logits - max(stop_gradient(logits), {axis}, true);
  return log(sum(exp(shifted), {axis})) - run_op(PickOp{}, {shifted, index});
}

DTensor softmax_cross_entropy(const DTensor& logits, const DTensor& labels) {
  if (logits.rank() == 0 || logits.shape() != labels.shape()) {
    throw ShapeError("softmax_cross_entropy", "logits and labels have one shape (..., c)",
                     to_string(logits.shape()) + " and " + to_string(labels.shape()),
                     "one-hot encode integer labels, or use the sparse form");
  }
  return -sum(labels * log_softmax(logits), {-1});
}

DTensor sigmoid_cross_entropy(const DTensor& logits, const DTensor& labels) {
  return run_op(SigmoidCrossEntropyOp{}, {logits, labels});
}

}  // namespace ops
}  // namespace tessera
