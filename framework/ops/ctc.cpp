#include <tessera/framework/ops/ctc.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr std::string_view ctc_name = "ctc_loss";
/// -log of the smallest normal number, nearly.
constexpr double unfit = 709;

/// The batch passes; all else is whole. Factors: batch, steps, classes, length.
Rule batch_rule() {
  Rule rule;
  rule.factors = {FactorKind::pass, FactorKind::whole, FactorKind::whole, FactorKind::whole};
  rule.in = {{0, 1, 2}, {0, 3}};
  rule.out = {{0}};
  return rule;
}

/// What ATen's functions take, of one block.
struct Alignment {
  /// Throws ConfigError for a label that is no class, and for a 0 before another label.
  Alignment(const at::Tensor& logits, const at::Tensor& given)
      : log_p(at::_log_softmax(logits, -1, false).transpose(0, 1)), labels(given.contiguous()),
        steps(static_cast<size_t>(logits.size(0)), logits.size(1)) {
    check_indices(ctc_name, "labels", labels, logits.size(-1));
    const at::Tensor given_one = labels.ne(0).cpu();
    const at::Tensor counts = given_one.sum(-1);
    const int64_t* count = counts.const_data_ptr<int64_t>();
    lengths.assign(count, count + counts.numel());
    const at::Tensor in_front = at::arange(labels.size(1)).lt(counts.unsqueeze(1));
    if (at::equal(in_front, given_one)) return;
    throw ConfigError(std::string(ctc_name), "labels are 0 only behind the end of a sequence",
                      "a 0 before another label", "number the classes from 1; 0 is the blank");
  }
  /// The losses, and the forward variables that the gradient reads.
  std::pair<at::Tensor, at::Tensor> run() const {
    auto [loss, alpha] = at::_ctc_loss(log_p, labels, steps, lengths, 0, false);
    return {std::move(loss), std::move(alpha)};
  }
  at::Tensor log_p;
  at::Tensor labels;
  std::vector<int64_t> steps;
  std::vector<int64_t> lengths;
};

/// The gradient of the logits, from logits, labels and dy.
struct CtcLossGradOp {
  static constexpr std::string_view name = "ctc_loss_grad";
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const { return {in[0]}; }
  Rule rule(const Specs&) const {
    Rule rule = batch_rule();
    rule.in.push_back(rule.out[0]);
    rule.out = {rule.in[0]};
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const Alignment of(in[0], in[1]);
    const auto [loss, alpha] = of.run();
    // Of log_p as if it were the logits: the sum over the classes is 0.
    return {at::_ctc_loss_backward(in[2].contiguous(), of.log_p, of.labels, of.steps, of.lengths,
                                   loss, alpha, 0, /*zero_infinity=*/true)
                .transpose(0, 1)
                .contiguous()};
  }
  static Samples<CtcLossGradOp> samples() {
    return {{{{{3, 6, 4}}, {{3, 2}, at::kLong, 1, 4}, {{3}}}}};
  }
};

struct CtcLossOp {
  static constexpr std::string_view name = ctc_name;
  auto attributes() const { return std::tuple<>(); }
  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    check_index_dtype(name, "labels", in[1]);
    const Shape &x = in[0].shape, &labels = in[1].shape;
    if (x.size() == 3 && labels.size() == 2 && x[0] == labels[0] && x[1] > 0 && x[2] > 1) {
      return {{{x[0]}, in[0].dtype}};
    }
    throw ShapeError(std::string(name),
                     "labels (n, length) go with logits (n, steps, classes), the blank one of them",
                     to_string(labels) + " and " + to_string(x), "reshape labels or logits");
  }
  Rule rule(const Specs&) const { return batch_rule(); }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor loss = Alignment(in[0], in[1]).run().first;
    return {loss.masked_fill_(loss.isinf(), unfit)};
  }
  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {run_op(CtcLossGradOp{}, {saved.in(0), saved.in(1), dy[0]}), DTensor()};
  }
  static Samples<CtcLossOp> samples() {
    return {{{{{3, 6, 4}}, {{3, 2}, at::kLong, 1, 4}}},
            {{{{5, 7, 4}}, {{5, 3}, at::kLong, 1, 4}}},
            {{{{2, 5, 3}}, {{2, 1}, at::kLong, 1, 3}}}};
  }
};

TESSERA_REGISTER_OP(CtcLossGradOp);
TESSERA_REGISTER_OP(CtcLossOp);

}  // namespace

namespace ops {

DTensor ctc_loss(const DTensor& logits, const DTensor& labels) {
  return run_op(CtcLossOp{}, {logits, as_indices(labels)});
}

}  // namespace ops
}  // namespace tessera
