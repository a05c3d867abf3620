#include <tessera/framework/ops/linear_cross_entropy.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/class_labels.hpp>
#include <tessera/framework/ops/internal/deferred_logits.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/relayout_step.hpp>

namespace tessera {

using namespace detail;
using ops::ClassAxis;

namespace {

constexpr std::string_view error_name = "linear_softmax_cross_entropy";

/// Most logits that a block computes at a time: few enough for 64 MB in float32, and for a usual
/// vocabulary enough rows to make the product fast.
constexpr int64_t max_logits = int64_t{1} << 24;
constexpr int64_t least_rows = 64;

at::ScalarType wide_dtype(at::ScalarType dtype) {
  return at::isReducedFloatingType(dtype) ? at::kFloat : dtype;
}

/// Factors of x (…, d), a kernel, a bias (c,) and (…): the rows' axes, then d, which is not
/// sharded, then the classes. Rows and classes leave partial sums of what lacks them.
struct Factors {
  Factors(int64_t row_rank, ClassAxis axis, FactorKind class_kind) {
    for (int a = 0; a < row_rank; ++a) rows.push_back(a);
    const int width = static_cast<int>(row_rank), classes = width + 1;
    x = rows;
    x.push_back(width);
    kernel = axis == ClassAxis::last ? std::vector{width, classes} : std::vector{classes, width};
    bias = {classes};
    kinds.assign(rows.size(), FactorKind::reduce);
    kinds.push_back(FactorKind::replicated);
    kinds.push_back(class_kind);
  }
  std::vector<int> rows, x, kernel, bias;
  std::vector<FactorKind> kinds;
};

/// A block's rows, its kernel as (d, c), its bias, if the inputs end with one, and its labels.
struct Block {
  Block(const LocalArgs& in, ClassAxis axis, bool biased, const at::Tensor& checked_labels = {})
      : rows(in[0].reshape({-1, in[0].size(-1)})),
        kernel(axis == ClassAxis::last ? in[1] : in[1].t()),
        bias(biased ? in[in.size() - 1] : at::Tensor()) {
    const Interval shard = in.range(1, axis == ClassAxis::last ? 1 : 0);
    if (checked_labels.defined()) labels = LocalLabels(checked_labels.reshape({-1}), shard);
  }

  /// Calls f(first, count, logits) for some rows at a time; `logits` (count, c), in wide_dtype(),
  /// may be changed.
  template <class F>
  void for_each_part(const F& f) const {
    const int64_t count = rows.size(0), classes = kernel.size(1);
    const int64_t step = std::max(least_rows, max_logits / std::max<int64_t>(classes, 1));
    const at::ScalarType dtype = rows.scalar_type(), wide = wide_dtype(dtype);
    // cuBLAS multiplies narrow numbers to wide sums; other products would round these.
    const bool sums_wide = dtype != wide && rows.is_cuda();
    const at::Tensor weights = sums_wide ? kernel : kernel.to(wide);
    const at::Tensor added = bias.defined() ? bias.to(wide) : bias;
    at::Tensor product;
    for (int64_t first = 0; first < count; first += step) {
      const int64_t n = std::min(step, count - first);
      const at::Tensor x = rows.narrow(0, first, n);
      if (sums_wide) {
        product = at::mm(x, weights, wide);
        f(first, n, added.defined() ? product.add_(added) : product);
        continue;
      }
      if (!product.defined()) product = at::empty({n, classes}, weights.options());
      at::Tensor part = product.narrow(0, 0, n);
      if (added.defined()) {
        at::addmm_out(part, added, x.to(wide), weights);
      } else {
        at::mm_out(part, x.to(wide), weights);
      }
      f(first, n, part);
    }
  }

  at::Tensor rows, kernel, bias;
  LocalLabels labels;
};

/// Throws unless x (…, d), kernel, labels (…) and the bias, if there is one, fit.
void check_operands(const Spec& x, const Spec& kernel, const Spec& labels, const Spec* bias,
                    ClassAxis classes) {
  check_floating(error_name, x);
  for (const Spec* weight : {&kernel, bias}) {
    if (!weight || weight->dtype == x.dtype) continue;
    throw ConfigError(std::string(error_name), "x, kernel and bias have one dtype",
                      str(dtype_name(x.dtype), " and ", dtype_name(weight->dtype)),
                      "cast one of them");
  }
  check_index_dtype(error_name, "labels", labels);
  const bool last = classes == ClassAxis::last;
  bool fit = !x.shape.empty() && kernel.rank() == 2 &&
             kernel.shape[last ? 0 : 1] == x.shape.back() &&
             Shape(x.shape.begin(), x.shape.end() - 1) == labels.shape;
  if (fit && bias) fit = bias->shape == Shape{kernel.shape[last ? 1 : 0]};
  if (!fit) {
    throw ShapeError(
        std::string(error_name),
        str("x (..., d), a kernel ", last ? "(d, c)" : "(c, d)",
            " and a bias (c,), if any, go with labels (...)"),
        str(to_string(x.shape), ", ", to_string(kernel.shape),
            bias ? ", " + to_string(bias->shape) : "", " and ", to_string(labels.shape)),
        "reshape the labels, or name the kernel's axis of classes");
  }
  if (kernel.shape[last ? 1 : 0] > 0) return;
  throw ShapeError(std::string(error_name), "there is at least one class", to_string(kernel.shape),
                   "give the kernel a column for each class");
}

int64_t count_of(const Spec& kernel, ClassAxis classes) {
  return kernel.shape[classes == ClassAxis::last ? 1 : 0];
}

/// Returns the rows' logits at the labels, 0 where a shard lacks the label.
at::Tensor at_labels(const at::Tensor& logits, const LocalLabels& labels, int64_t first) {
  const int64_t n = logits.size(0);
  return logits.gather(1, labels.index.narrow(0, first, n))
      .masked_fill_(labels.inside.narrow(0, first, n).logical_not(), 0)
      .squeeze(1);
}

/// x, kernel, labels, top (…), dsum (…), dpicked (…) and perhaps a bias -> the gradients of x,
/// kernel and bias, if that of a logit is exp(logit - top) dsum, plus dpicked at the label.
struct LinearClassTermsGradOp {
  static constexpr std::string_view name = "linear_class_terms_grad";
  ClassAxis classes = ClassAxis::last;
  auto attributes() const { return std::tie(classes); }
  Specs infer(const Specs& in) const {
    Specs out = {in[0], in[1]};
    if (in.size() == 7) out.push_back(in[6]);
    return out;
  }
  Rule rule(const Specs& in) const {
    const Factors factors(in[2].rank(), classes, FactorKind::reduce);
    Rule rule;
    rule.in = {factors.x, factors.kernel, factors.rows, factors.rows, factors.rows, factors.rows};
    rule.out = {factors.x, factors.kernel};
    if (in.size() == 7) {
      rule.in.push_back(factors.bias);
      rule.out.push_back(factors.bias);
    }
    rule.factors = factors.kinds;
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const Block block(in, classes, in.size() == 7,
                      clamped_indices(in[2], count_of(in.spec(1), classes)));
    const at::ScalarType dtype = in[0].scalar_type();
    const at::TensorOptions wide = in[1].options().dtype(wide_dtype(dtype));
    const auto column = [&](const at::Tensor& rows) { return rows.reshape({-1, 1}).to(wide); };
    const at::Tensor top = column(in[3]), dsum = column(in[4]), dpicked = column(in[5]);
    at::Tensor dx = at::empty_like(block.rows);
    // Sums over parts are rounded once.
    at::Tensor dkernel = at::zeros(in[1].sizes(), wide), dbias;
    if (block.bias.defined()) dbias = at::zeros(block.bias.sizes(), wide);
    block.for_each_part([&](int64_t first, int64_t n, const at::Tensor& logits) {
      const auto part = [&](const at::Tensor& all) { return all.narrow(0, first, n); };
      at::Tensor d = logits.sub_(part(top)).exp_().mul_(part(dsum));
      const at::Tensor here = part(dpicked);
      d.scatter_add_(1, part(block.labels.index),
                     at::where(part(block.labels.inside), here, at::zeros_like(here)));
      if (dbias.defined()) dbias.add_(d.sum(0));
      d = d.to(dtype);
      const at::Tensor rows = part(block.rows);
      at::Tensor dx_part = part(dx);
      at::mm_out(dx_part, d, block.kernel.t());
      const at::Tensor left = classes == ClassAxis::last ? rows.t() : d.t();
      const at::Tensor right = classes == ClassAxis::last ? d : rows;
      if (dkernel.scalar_type() == dtype) {
        dkernel.addmm_(left, right);
      } else {
        dkernel.add_(at::mm(left, right));
      }
    });
    Tensors results = {dx.view(in[0].sizes()), dkernel.to(dtype)};
    if (dbias.defined()) results.push_back(dbias.to(dtype));
    return results;
  }
  static Samples<LinearClassTermsGradOp> samples() {
    const SampleInput row{{3}}, rows{{2, 3}};
    return {
        {{{{3, 4}}, {{4, 5}}, {{3}, at::kLong, 0, 5}, row, row, row}, {ClassAxis::last}},
        {{{{2, 3, 4}}, {{6, 4}}, {{2, 3}, at::kLong, 0, 6}, rows, rows, rows}, {ClassAxis::first}},
        {{{{3, 4}}, {{4, 5}}, {{3}, at::kLong, 0, 5}, row, row, row, {{5}}}, {ClassAxis::last}}};
  }
};

/// Returns the gradients of x, kernel, labels, and `between` and a bias if they were saved.
Grads class_terms_gradients(const Saved& saved, ClassAxis classes, bool has_top, const DTensor& top,
                            const DTensor& dsum, const DTensor& dpicked) {
  std::vector<DTensor> in = {saved.in(0), saved.in(1), saved.in(2), top, dsum, dpicked};
  const size_t without_bias = has_top ? 4 : 3;
  if (saved.size() > without_bias) in.push_back(saved.in(without_bias));
  const LinearClassTermsGradOp op{classes};
  Grads grads = dispatch(op_info<LinearClassTermsGradOp>(), &op, attribute_hash(op), in);
  grads.insert(grads.begin() + 2, without_bias - 2, DTensor());
  return grads;
}

/// x, kernel and perhaps a bias -> the largest logit of each row.
struct LinearClassMaxOp {
  static constexpr std::string_view name = "linear_class_max";
  static constexpr bool stops_gradient = true;
  ClassAxis classes = ClassAxis::last;
  auto attributes() const { return std::tie(classes); }
  Specs infer(const Specs& in) const {
    return {{Shape(in[0].shape.begin(), in[0].shape.end() - 1), in[0].dtype}};
  }
  Rule rule(const Specs& in) const {
    const Factors factors(in[0].rank() - 1, classes, FactorKind::reduce);
    Rule rule;
    rule.in = {factors.x, factors.kernel};
    if (in.size() == 3) rule.in.push_back(factors.bias);
    rule.out = {factors.rows};
    rule.factors = factors.kinds;
    return rule.reducing(Reduce::max);
  }
  Tensors forward(const LocalArgs& in) const {
    const Block block(in, classes, in.size() == 3);
    const at::Tensor top = at::empty({block.rows.size(0)}, in[0].options());
    block.for_each_part([&](int64_t first, int64_t n, const at::Tensor& logits) {
      top.narrow(0, first, n).copy_(logits.amax(1));
    });
    const c10::IntArrayRef sizes = in[0].sizes();
    return {top.view(sizes.slice(0, sizes.size() - 1))};
  }
  static Samples<LinearClassMaxOp> samples() {
    return {{{{{3, 4}}, {{4, 5}}}, {ClassAxis::last}},
            {{{{2, 3, 4}}, {{6, 4}}}, {ClassAxis::first}},
            {{{{3, 4}}, {{4, 5}}, {{5}}}, {ClassAxis::last}}};
  }
};

/// x, kernel, labels, the constant top (…) and perhaps a bias -> sum(exp(logits - top)) and the
/// label's logit less top. Both are partial sums over the shards of the classes.
struct LinearClassTermsOp {
  static constexpr std::string_view name = "linear_class_terms";
  ClassAxis classes = ClassAxis::last;
  auto attributes() const { return std::tie(classes); }
  Specs infer(const Specs& in) const {
    check_operands(in[0], in[1], in[2], in.size() == 5 ? &in[4] : nullptr, classes);
    const Spec out{in[2].shape, wide_dtype(in[0].dtype)};
    return {out, out};
  }
  Rule rule(const Specs& in) const {
    const Factors factors(in[2].rank(), classes, FactorKind::reduce);
    Rule rule;
    rule.in = {factors.x, factors.kernel, factors.rows, factors.rows};
    if (in.size() == 5) rule.in.push_back(factors.bias);
    rule.out = {factors.rows, factors.rows};
    rule.factors = factors.kinds;
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const Block block(
        in, classes, in.size() == 5,
        checked_indices(error_name, "labels", in[2], count_of(in.spec(1), classes), in.ranges(2)));
    const auto options = in[0].options().dtype(wide_dtype(in[0].scalar_type()));
    const at::Tensor top = in[3].reshape({-1, 1}).to(options);
    const at::Tensor sums = at::empty({block.rows.size(0)}, options);
    const at::Tensor picked = at::empty_like(sums);
    block.for_each_part([&](int64_t first, int64_t n, const at::Tensor& logits) {
      const at::Tensor shifted = logits.sub_(top.narrow(0, first, n));
      picked.narrow(0, first, n).copy_(at_labels(shifted, block.labels, first));
      sums.narrow(0, first, n).copy_(shifted.exp_().sum(1));
    });
    return {sums.view(in[2].sizes()), picked.view(in[2].sizes())};
  }
  static constexpr Saves saves = inputs(0, 1, 2, 3, 4);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    const auto or_zeros = [&](size_t term) {
      if (dy[term].defined()) return dy[term];
      const Sharding& rows = saved.sharding(3);
      return filled(rows.shape, 0, wide_dtype(rows.dtype), rows.layout.resolved());
    };
    return class_terms_gradients(saved, classes, true, saved.in(3), or_zeros(0), or_zeros(1));
  }
  static Samples<LinearClassTermsOp> samples() {
    const auto top = [](const Shape& rows) {
      return SampleInput{.shape = rows, .differentiable = false};
    };
    return {{{{{3, 4}}, {{4, 5}}, {{3}, at::kLong, 0, 5}, top({3})}, {ClassAxis::last}},
            {{{{2, 3, 4}}, {{6, 4}}, {{2, 3}, at::kLong, 0, 6}, top({2, 3})}, {ClassAxis::first}},
            {{{{3, 4}}, {{4, 5}}, {{3}, at::kLong, 0, 5}, top({3}), {{5}}}, {ClassAxis::last}}};
  }
};

/// x, kernel, labels and perhaps a bias -> the loss and log(sum(exp(logits))), for classes that are
/// not sharded.
struct LinearCrossEntropyOp {
  static constexpr std::string_view name = error_name;
  ClassAxis classes = ClassAxis::last;
  auto attributes() const { return std::tie(classes); }
  Specs infer(const Specs& in) const {
    check_operands(in[0], in[1], in[2], in.size() == 4 ? &in[3] : nullptr, classes);
    const Spec out{in[2].shape, wide_dtype(in[0].dtype)};
    return {out, out};
  }
  Rule rule(const Specs& in) const {
    const Factors factors(in[2].rank(), classes, FactorKind::replicated);
    Rule rule;
    rule.in = {factors.x, factors.kernel, factors.rows};
    if (in.size() == 4) rule.in.push_back(factors.bias);
    rule.out = {factors.rows, factors.rows};
    rule.factors = factors.kinds;
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const Block block(
        in, classes, in.size() == 4,
        checked_indices(error_name, "labels", in[2], count_of(in.spec(1), classes), in.ranges(2)));
    const auto options = in[0].options().dtype(wide_dtype(in[0].scalar_type()));
    const at::Tensor losses = at::empty({block.rows.size(0)}, options);
    const at::Tensor sums = at::empty_like(losses);
    block.for_each_part([&](int64_t first, int64_t n, const at::Tensor& logits) {
      at::Tensor sum = sums.narrow(0, first, n);
      at::logsumexp_out(sum, logits, {1});
      losses.narrow(0, first, n).copy_(sum.sub(at_labels(logits, block.labels, first)));
    });
    return {losses.view(in[2].sizes()), sums.view(in[2].sizes())};
  }
  static constexpr Saves saves = {0b1111, 0b10};
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    DTensor dsum = dy[0];
    if (dy[1].defined()) dsum = dsum.defined() ? dsum + dy[1] : dy[1];
    const Sharding& rows = *saved.out(1).sharding();
    const DTensor dpicked =
        dy[0].defined() ? -dy[0] : filled(rows.shape, 0, rows.dtype, rows.layout.resolved());
    return class_terms_gradients(saved, classes, false, saved.out(1), dsum, dpicked);
  }
  static Samples<LinearCrossEntropyOp> samples() {
    return {{{{{3, 4}}, {{4, 5}}, {{3}, at::kLong, 0, 5}}, {ClassAxis::last}},
            {{{{2, 3, 4}}, {{6, 4}}, {{2, 3}, at::kLong, 0, 6}}, {ClassAxis::first}},
            {{{{3, 4}}, {{4, 5}}, {{3}, at::kLong, 0, 5}, {{5}}}, {ClassAxis::last}}};
  }
};

template <class Op>
std::vector<DTensor> run_all(const Op& op, const std::vector<DTensor>& in) {
  return dispatch(op_info<Op>(), &op, attribute_hash(op), in);
}

TESSERA_REGISTER_OP(LinearClassTermsGradOp);
TESSERA_REGISTER_OP(LinearClassMaxOp);
TESSERA_REGISTER_OP(LinearClassTermsOp);
TESSERA_REGISTER_OP(LinearCrossEntropyOp);

}  // namespace

DTensor detail::DeferredLogits::compute() const {
  const CommLabel within(label);
  if (classes == ClassAxis::last && bias.defined()) return ops::dense(x, kernel, bias, false);
  const DTensor product = ops::matmul(x, kernel, false, classes == ClassAxis::first);
  return bias.defined() ? product + bias : product;
}

int64_t& detail::least_large_logits() {
  static int64_t least = int64_t{1} << 22;
  return least;
}

const DeferredLogits* detail::large_deferred_logits(const DTensor& logits) {
  const auto* const later = dynamic_cast<const DeferredLogits*>(DeferredValue::of(logits));
  if (!later || logits.numel() < least_large_logits()) return nullptr;
  const int64_t contracted = later->classes == ClassAxis::last ? 0 : 1;
  const bool whole = later->kernel.layout().num_shards(contracted) == 1 &&
                     later->x.layout().num_shards(later->x.rank() - 1) == 1;
  return whole ? later : nullptr;
}

DTensor ops::deferred_logits(const DTensor& x, const DTensor& kernel, const DTensor& bias,
                             ClassAxis classes) {
  const int64_t axis = classes == ClassAxis::last ? 1 : 0;
  const bool fit = x.rank() > 0 && kernel.rank() == 2 && kernel.size(1 - axis) == x.size(-1);
  // The operation that does not fit says so.
  auto later = std::make_shared<DeferredLogits>();
  later->x = x;
  later->kernel = kernel;
  later->bias = bias;
  later->classes = classes;
  later->label = CommLabel::current();
  if (!fit) return later->compute();
  Shape shape = x.shape();
  shape.back() = kernel.size(axis);
  return DeferredValue::make(shape, x.dtype(), x.mesh(), std::move(later));
}

DTensor ops::linear_softmax_cross_entropy(const DTensor& x, const DTensor& kernel,
                                          const DTensor& labels, const DTensor& bias,
                                          ClassAxis classes) {
  const DTensor index = to_int64_indices(labels);
  const int64_t class_axis = classes == ClassAxis::last ? 1 : 0;
  const auto with_bias = [&](std::vector<DTensor> in) {
    if (bias.defined()) in.push_back(bias);
    return in;
  };
  const bool sharded = kernel.rank() == 2 && kernel.layout().num_shards(class_axis) > 1;
  if (!sharded) return run_all(LinearCrossEntropyOp{classes}, with_bias({x, kernel, index}))[0];
  const Spec bias_spec = bias.defined() ? Spec{bias.shape(), bias.dtype()} : Spec();
  check_operands({x.shape(), x.dtype()}, {kernel.shape(), kernel.dtype()},
                 {index.shape(), index.dtype()}, bias.defined() ? &bias_spec : nullptr, classes);
  const DTensor top = run_all(LinearClassMaxOp{classes}, with_bias({x, kernel}))[0];
  const std::vector<DTensor> terms =
      run_all(LinearClassTermsOp{classes}, with_bias({x, kernel, index, top}));
  return log(terms[0]) - terms[1];
}

}  // namespace tessera
