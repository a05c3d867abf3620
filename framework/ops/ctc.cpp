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
/// About -log of the smallest normal float64.
constexpr double infeasible_loss = 709;

/// The batch may be sharded; all other axes are replicated. Factors: batch, steps, classes, length.
Rule batch_rule() {
  Rule rule;
  rule.factors = {FactorKind::pass, FactorKind::replicated, FactorKind::replicated,
                  FactorKind::replicated};
  rule.in = {{0, 1, 2}, {0, 3}};
  rule.out = {{0}};
  return rule;
}

/// Converts float16 and bfloat16, which ATen's CTC does not take, to float32.
at::Tensor at_least_float(const at::Tensor& x) { return x.to(at::toOpMathType(x.scalar_type())); }

[[noreturn]] void fail_gap(int64_t) {
  throw ConfigError(std::string(ctc_name), "labels must be 0 only after the end of a sequence",
                    "a 0 before another label", "number the classes from 1; 0 is the blank");
}

/// A block's log-probabilities (steps, rows, classes), labels (rows, length) and sequence lengths.
struct Alignment {
  /// Throws ConfigError for a label outside [0, classes), and for a 0 before another label; for a
  /// GPU it is thrown when this thread next reads from that GPU.
  Alignment(const at::Tensor& logits, const at::Tensor& unchecked)
      : log_p(at::_log_softmax(at_least_float(logits), -1, false).transpose(0, 1)),
        labels(checked_indices(ctc_name, "labels", unchecked, logits.size(-1)).contiguous()),
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

/// CTC by ATen's functions, which read the lengths on the host.
class HostCtc {
 public:
  explicit HostCtc(const Alignment& alignment)
      : alignment_(alignment), steps_(size_t(alignment.log_p.size(1)), alignment.log_p.size(0)) {
    const int64_t* const length = alignment.lengths.const_data_ptr<int64_t>();
    lengths_.assign(length, length + alignment.lengths.numel());
    std::tie(loss, alpha_) =
        at::_ctc_loss(alignment.log_p, alignment.labels, steps_, lengths_, 0, false);
  }
  at::Tensor gradient(const at::Tensor& dy) const {
    return at::_ctc_loss_backward(dy.contiguous(), alignment_.log_p, alignment_.labels, steps_,
                                  lengths_, loss, alpha_, 0, /*zero_infinity=*/true);
  }
  at::Tensor loss;

 private:
  const Alignment& alignment_;
  std::vector<int64_t> steps_, lengths_;
  at::Tensor alpha_;
};

/// CTC on a GPU, step by step and without a device-to-host wait. An alignment is a path through
/// states: a blank, the first label, a blank, the second label, … and a final blank.
class GpuCtc {
 public:
  explicit GpuCtc(const Alignment& alignment) : alignment_(alignment) {
    const int64_t rows = alignment.labels.size(0), length = alignment.labels.size(1),
                  states = 2 * length + 1;
    const at::Tensor classes = at::zeros({rows, states}, alignment.labels.options());
    if (length > 0) classes.slice(1, 1, states, 2).copy_(alignment.labels);
    classes_ = classes.expand({alignment.log_p.size(0), rows, states});
    emitted_ = alignment.log_p.gather(2, classes_);
    const at::Tensor log_zeros = at::full({rows, states}, log_zero_, alignment.log_p.options());
    first_ = log_zeros.clone();
    first_.slice(1, 0, 2).zero_();
    // The blank between two labels may be skipped if they differ.
    skips_ = log_zeros.clone();
    if (length > 1) {
      const at::Tensor differ =
          alignment.labels.slice(1, 1).ne(alignment.labels.slice(1, 0, length - 1));
      skips_.slice(1, 3, states, 2).masked_fill_(differ, 0);
    }
    const at::Tensor end = at::arange(states, alignment.labels.options()) - alignment.lengths * 2;
    last_ = log_zeros.masked_fill(end.eq(0).logical_or_(end.eq(-1)), 0);
    alpha_ = path_log_probs(first_, emitted_, skips_);
    loss = (alpha_[-1] + last_).logsumexp(-1).neg_();
  }
  at::Tensor gradient(const at::Tensor& dy) const {
    // Paths out of a state are the paths into it with states and steps reversed.
    const int64_t states = skips_.size(1);
    const at::Tensor back = at::constant_pad_nd(skips_, {0, 2}, log_zero_).narrow(1, 2, states);
    const at::Tensor beta =
        path_log_probs(last_.flip(1), emitted_.flip({0, 2}), back.flip(1)).flip({0, 2});
    const at::Tensor state_posteriors =
        (alpha_ + beta - emitted_ + loss.unsqueeze(-1)).exp_().nan_to_num_(0, 0, 0);
    const at::Tensor class_posteriors =
        at::zeros_like(alignment_.log_p).scatter_add_(2, classes_, state_posteriors);
    const at::Tensor dx = (alignment_.log_p.exp() - class_posteriors).mul_(dy.unsqueeze(-1));
    return dx.masked_fill_(loss.isinf().unsqueeze(-1), 0);
  }
  at::Tensor loss;

 private:
  static constexpr double log_zero_ = -std::numeric_limits<double>::infinity();

  /// Returns the log-probability of all paths into each state at each step (steps, rows, states). A
  /// state follows itself, the state before it and, where `skips` is 0, the one before that.
  static at::Tensor path_log_probs(const at::Tensor& first, const at::Tensor& emitted,
                                   const at::Tensor& skips) {
    const int64_t states = first.size(1);
    const at::Tensor padded =
        at::full({emitted.size(0), emitted.size(1), states + 2}, log_zero_, emitted.options());
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

  const Alignment& alignment_;
  at::Tensor classes_;               ///< class of each state at each step
  at::Tensor emitted_;               ///< log-probability of that class
  at::Tensor first_, last_, skips_;  ///< 0 where a path may begin, end, skip a state; else -inf
  at::Tensor alpha_;
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
    const Alignment alignment(in[0], in[1]);
    const at::Tensor dy = at_least_float(in[2]);
    // The gradient of log_p is also that of the logits, because it sums to 0 over the classes.
    const at::Tensor dx =
        dy.is_cpu() ? HostCtc(alignment).gradient(dy) : GpuCtc(alignment).gradient(dy);
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
    const Alignment alignment(in[0], in[1]);
    const at::Tensor loss = in[0].is_cpu() ? HostCtc(alignment).loss : GpuCtc(alignment).loss;
    return {loss.masked_fill_(loss.isinf(), infeasible_loss).to(in[0].scalar_type())};
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
  return run_op(CtcLossOp{}, {logits, to_int64_indices(labels)});
}

}  // namespace ops
}  // namespace tessera
