#include <tessera/framework/ops/ctc.hpp>

#include <limits>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/tensor/internal/deferred_checks.hpp>

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

/// In a type that ATen's functions know.
at::Tensor at_least_float(const at::Tensor& x) { return x.to(at::toOpMathType(x.scalar_type())); }

[[noreturn]] void fail_gap(int64_t) {
  throw ConfigError(std::string(ctc_name), "labels are 0 only behind the end of a sequence",
                    "a 0 before another label", "number the classes from 1; 0 is the blank");
}

/// One block: probabilities by step, row and class, and the labels of each row.
struct Alignment {
  /// Throws ConfigError for a label that is no class, and for a 0 before another label; on a GPU
  /// that is thrown when this thread next reads from it.
  Alignment(const at::Tensor& logits, const at::Tensor& given)
      : log_p(at::_log_softmax(at_least_float(logits), -1, false).transpose(0, 1)),
        labels(checked_indices(ctc_name, "labels", given, logits.size(-1)).contiguous()),
        lengths(labels.ne(0).sum(-1, true)) {
    const at::Tensor in_front = at::arange(labels.size(1), labels.options()).lt(lengths);
    if (!labels.is_cpu()) {
      const at::Tensor gap = in_front.ne(labels.ne(0)).any();
      deferred_check(labels.device(), fail_gap).masked_fill_(gap, 0);
    } else if (!at::equal(in_front, labels.ne(0))) {
      fail_gap(0);
    }
  }
  at::Tensor log_p;
  at::Tensor labels;
  at::Tensor lengths;  ///< (rows, 1)
};

/// ATen's functions, which read lengths on the host.
class HostCtc {
 public:
  explicit HostCtc(const Alignment& of)
      : of_(of), steps_(size_t(of.log_p.size(1)), of.log_p.size(0)) {
    const int64_t* const length = of.lengths.const_data_ptr<int64_t>();
    lengths_.assign(length, length + of.lengths.numel());
    std::tie(loss, alpha_) = at::_ctc_loss(of.log_p, of.labels, steps_, lengths_, 0, false);
  }
  at::Tensor gradient(const at::Tensor& dy) const {
    return at::_ctc_loss_backward(dy.contiguous(), of_.log_p, of_.labels, steps_, lengths_, loss,
                                  alpha_, 0, /*zero_infinity=*/true);
  }
  at::Tensor loss;

 private:
  const Alignment& of_;
  std::vector<int64_t> steps_, lengths_;
  at::Tensor alpha_;
};

/// The same on a GPU, which waits for nothing and goes from step to step. An alignment is a way
/// through states: a blank, the first label, a blank, the second … and a blank at the end.
class GpuCtc {
 public:
  explicit GpuCtc(const Alignment& of) : of_(of) {
    const int64_t rows = of.labels.size(0), length = of.labels.size(1), states = 2 * length + 1;
    const at::Tensor classes = at::zeros({rows, states}, of.labels.options());
    if (length > 0) classes.slice(1, 1, states, 2).copy_(of.labels);
    classes_ = classes.expand({of.log_p.size(0), rows, states});
    emitted_ = of.log_p.gather(2, classes_);
    const at::Tensor never = at::full({rows, states}, never_, of.log_p.options());
    first_ = never.clone();
    first_.slice(1, 0, 2).zero_();
    // A blank between two labels may be left out where these differ.
    skips_ = never.clone();
    if (length > 1) {
      const at::Tensor differ = of.labels.slice(1, 1).ne(of.labels.slice(1, 0, length - 1));
      skips_.slice(1, 3, states, 2).masked_fill_(differ, 0);
    }
    const at::Tensor end = at::arange(states, of.labels.options()) - of.lengths * 2;
    last_ = never.masked_fill(end.eq(0).logical_or_(end.eq(-1)), 0);
    ways_ = ways(first_, emitted_, skips_);
    loss = (ways_[-1] + last_).logsumexp(-1).neg_();
  }
  at::Tensor gradient(const at::Tensor& dy) const {
    // Ways out of a state are ways into it from the end.
    const int64_t states = skips_.size(1);
    const at::Tensor back = at::constant_pad_nd(skips_, {0, 2}, never_).narrow(1, 2, states);
    const at::Tensor ways_out =
        ways(last_.flip(1), emitted_.flip({0, 2}), back.flip(1)).flip({0, 2});
    const at::Tensor shares =
        (ways_ + ways_out - emitted_ + loss.unsqueeze(-1)).exp_().nan_to_num_(0, 0, 0);
    const at::Tensor of_classes = at::zeros_like(of_.log_p).scatter_add_(2, classes_, shares);
    const at::Tensor dx = (of_.log_p.exp() - of_classes).mul_(dy.unsqueeze(-1));
    return dx.masked_fill_(loss.isinf().unsqueeze(-1), 0);
  }
  at::Tensor loss;

 private:
  static constexpr double never_ = -std::numeric_limits<double>::infinity();

  /// log of the probability of all ways into each state, at each step (steps, rows, states): from
  /// itself, the one before and, where `skips` is 0, the one before that.
  static at::Tensor ways(const at::Tensor& first, const at::Tensor& emitted,
                         const at::Tensor& skips) {
    const int64_t states = first.size(1);
    const at::Tensor padded =
        at::full({emitted.size(0), emitted.size(1), states + 2}, never_, emitted.options());
    const auto from = [&](int64_t step, int64_t back) {
      return padded[step].narrow(1, 2 - back, states);
    };
    from(0, 0).copy_(first + emitted[0]);
    for (int64_t t = 1; t < emitted.size(0); ++t) {
      const at::Tensor near = at::logaddexp(from(t - 1, 0), from(t - 1, 1));
      at::Tensor here = from(t, 0);
      at::add_out(here, at::logaddexp(near, from(t - 1, 2) + skips), emitted[t]);
    }
    return padded.narrow(2, 2, states);
  }

  const Alignment& of_;
  at::Tensor classes_;               ///< of each state, at each step
  at::Tensor emitted_;               ///< log of the probability of its class
  at::Tensor first_, last_, skips_;  ///< 0 where a way may begin, end, leave the state before out
  at::Tensor ways_;
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
    const at::Tensor dy = at_least_float(in[2]);
    // Of log_p as if it were the logits: the sum over the classes is 0.
    const at::Tensor dx = dy.is_cpu() ? HostCtc(of).gradient(dy) : GpuCtc(of).gradient(dy);
    return {dx.transpose(0, 1).to(in[0].scalar_type()).contiguous()};
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
    const Alignment of(in[0], in[1]);
    const at::Tensor loss = in[0].is_cpu() ? HostCtc(of).loss : GpuCtc(of).loss;
    return {loss.masked_fill_(loss.isinf(), unfit).to(in[0].scalar_type())};
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
