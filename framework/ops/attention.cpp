#include <tessera/framework/ops/attention.hpp>

#include <cmath>
#include <limits>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr std::string_view attention_name = "attention";

/// (batch…, steps, heads, features) as ATen's (batch, heads, steps, features), a view where the
/// features lie side by side.
at::Tensor heads_first(const at::Tensor& x) {
  const at::Tensor dense = x.stride(-1) == 1 ? x : x.contiguous();
  return dense.reshape({-1, x.size(-3), x.size(-2), x.size(-1)}).transpose(1, 2);
}

/// ATen's (batch, heads, steps, features) with the batch and steps of another block.
at::Tensor steps_first(const at::Tensor& x, const at::Tensor& like) {
  std::vector<int64_t> shape = like.sizes().vec();
  shape.back() = x.size(-1);
  return x.transpose(1, 2).contiguous().view(shape);
}

/// A mask of one batch axis, of extent 1 where all of them are.
at::Tensor one_batch_axis(const at::Tensor& mask, const at::Tensor& query) {
  std::vector<int64_t> shape = mask.sizes().vec();
  if (mask.size(-1) * mask.size(-2) * mask.size(-3) < mask.numel()) {
    for (size_t a = 0; a + 3 < shape.size(); ++a) shape[a] = query.size(int64_t(a));
  }
  return mask.expand(shape).reshape({-1, mask.size(-3), mask.size(-2), mask.size(-1)});
}

/// ATen's kernel for CPUs takes their word for it.
void check_extents(const at::Tensor& x, const Shape& expected) {
  if (x.sizes() == expected) return;
  throw ShapeError(std::string(attention_name), "a block is " + to_string(expected),
                   to_string(x.sizes().vec()), "cut all operands alike");
}

/// The attention of one block, (batch, heads, steps, features), on what ATen has for it.
class LocalAttention {
 public:
  LocalAttention(const LocalArgs& in, const ops::AttentionForm& form, const at::Tensor& mask)
      : query_(heads_first(in[0])), key_(heads_first(in[1])), value_(heads_first(in[2])),
        scale_(form.scale.value_or(1 / std::sqrt(double(query_.size(-1))))),
        causal_(form.causal), zeros_(form.zeros) {
    const int64_t n = query_.size(0), heads = query_.size(1), s = key_.size(2);
    check_extents(key_, {n, heads, s, query_.size(3)});
    check_extents(value_, {n, heads, s, value_.size(3)});
    if (mask.defined()) set_mask(one_batch_axis(mask, in[0]));
  }

  /// The values and, for each step, the logarithm of its scores' sum: (batch, heads, steps).
  std::pair<at::Tensor, at::Tensor> forward() const;
  /// Gradients of query, key and value.
  Tensors backward(const at::Tensor& dy, const at::Tensor& y, const at::Tensor& sums) const;

 private:
  /// ATen's fused kernels, by what they run on, or none.
  enum class Kernel { cpu, flash, efficient, none };

  void set_mask(at::Tensor open);
  Kernel kernel() const;
  at::Tensor scores() const;

  at::Tensor query_, key_, value_;
  double scale_;
  bool causal_, zeros_;
  std::optional<at::Tensor> bias_;  ///< 0, or -inf for what is masked
  at::Tensor alone_;                ///< steps that may attend to nothing, if there may be any
};

void LocalAttention::set_mask(at::Tensor open) {
  const int64_t t = query_.size(2), s = key_.size(2);
  if (causal_) open = open.expand({open.size(0), open.size(1), t, s}).tril();
  causal_ = false;
  at::Tensor alone = open.any(-1, true).logical_not_();
  // A number is read at no cost on a CPU; elsewhere there may be some or none.
  if (!alone.is_cpu() || alone.any().item<bool>()) {
    // A query of 0 that may attend to everything: the mean, with no sum that is 0.
    query_ = query_.masked_fill(alone, 0);
    open = open.logical_or(alone);
    alone_ = std::move(alone);
  }
  // Rows begin at multiples of 16 numbers, as CUDA's kernels want them.
  std::vector<int64_t> shape = open.sizes().vec();
  shape.back() = (s + 15) / 16 * 16;
  bias_ = at::zeros(shape, query_.options())
              .narrow(-1, 0, s)
              .masked_fill_(open.logical_not(), -std::numeric_limits<double>::infinity())
              .expand({query_.size(0), query_.size(1), t, s});
}

LocalAttention::Kernel LocalAttention::kernel() const {
  const int64_t dim = query_.size(-1);
  if (value_.size(-1) != dim) return Kernel::none;
  if (query_.is_cpu()) return Kernel::cpu;
  if (!query_.is_cuda() || query_.scalar_type() == at::kDouble || dim % 8 != 0) return Kernel::none;
  // Flash takes no bias, and counts what is causal from the last step.
  const bool square = !causal_ || query_.size(2) == key_.size(2);
  const bool half = query_.scalar_type() != at::kFloat;
  return half && !bias_ && square && dim <= 256 ? Kernel::flash : Kernel::efficient;
}

at::Tensor LocalAttention::scores() const {
  const at::ScalarType dtype = at::toOpMathType(query_.scalar_type());
  at::Tensor y = at::matmul(query_.to(dtype), key_.to(dtype).transpose(-1, -2)).mul_(scale_);
  if (bias_) y.add_(*bias_);
  if (causal_) {
    const at::Tensor all = at::ones({y.size(-2), y.size(-1)}, y.options().dtype(at::kBool));
    y.masked_fill_(all.triu(1), -std::numeric_limits<double>::infinity());
  }
  return y;
}

std::pair<at::Tensor, at::Tensor> LocalAttention::forward() const {
  at::Tensor y, sums;
  switch (kernel()) {
    case Kernel::cpu:
      std::tie(y, sums) = at::_scaled_dot_product_flash_attention_for_cpu(
          query_, key_, value_, 0, causal_, bias_, scale_);
      break;
    case Kernel::flash: {
      const auto all = at::_scaled_dot_product_flash_attention(query_, key_, value_, 0, causal_,
                                                               false, scale_);
      y = std::get<0>(all);
      sums = std::get<1>(all);
      break;
    }
    case Kernel::efficient: {
      const auto all = at::_scaled_dot_product_efficient_attention(query_, key_, value_, bias_,
                                                                   true, 0, causal_, scale_);
      y = std::get<0>(all);
      sums = std::get<1>(all).narrow(-1, 0, query_.size(2));
      break;
    }
    case Kernel::none: {
      const at::Tensor all = scores();
      sums = all.logsumexp(-1);
      y = at::matmul(at::_softmax(all, -1, false), value_.to(all.scalar_type()))
              .to(value_.scalar_type());
    }
  }
  if (zeros_ && alone_.defined()) y = y.masked_fill(alone_, 0);
  return {y, sums};
}

Tensors LocalAttention::backward(const at::Tensor& given, const at::Tensor& y,
                                 const at::Tensor& sums) const {
  Shape extents = query_.sizes().slice(0, 3).vec();
  check_extents(sums, extents);
  extents.push_back(value_.size(3));
  check_extents(given, extents);
  check_extents(y, extents);
  const at::Tensor dy = zeros_ && alone_.defined() ? given.masked_fill(alone_, 0) : given;
  // What draws would be seen by, if there were a dropout.
  const at::Tensor draws = at::empty({2}, sums.options().dtype(at::kLong));
  at::Tensor dq, dk, dv;
  switch (kernel()) {
    case Kernel::cpu:
      std::tie(dq, dk, dv) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          dy, query_, key_, value_, y, sums, 0, causal_, bias_, scale_);
      break;
    case Kernel::flash:
      std::tie(dq, dk, dv) = at::_scaled_dot_product_flash_attention_backward(
          dy, query_, key_, value_, y, sums, {}, {}, query_.size(2), key_.size(2), 0, causal_,
          draws, draws, scale_);
      break;
    case Kernel::efficient: {
      // The kernel reads blocks of 32 sums.
      const int64_t missing = (32 - sums.size(-1) % 32) % 32;
      const at::Tensor padded =
          at::constant_pad_nd(sums, {0, missing}, std::numeric_limits<double>::infinity());
      const auto all = at::_scaled_dot_product_efficient_attention_backward(
          dy, query_, key_, value_, bias_.value_or(at::Tensor()), y, padded, draws, draws, 0,
          {true, true, true, false}, causal_, scale_);
      std::tie(dq, dk, dv, std::ignore) = all;
      break;
    }
    case Kernel::none: {
      const at::Tensor shares = scores().sub_(sums.unsqueeze(-1)).exp_();
      const at::ScalarType dtype = shares.scalar_type();
      const at::Tensor d = dy.to(dtype);
      const at::Tensor mean = at::mul(d, y).sum(-1, true);
      const at::Tensor ds =
          at::matmul(d, value_.to(dtype).transpose(-1, -2)).sub_(mean).mul_(shares).mul_(scale_);
      dq = at::matmul(ds, key_.to(dtype)).to(query_.scalar_type());
      dk = at::matmul(ds.transpose(-1, -2), query_.to(dtype)).to(key_.scalar_type());
      dv = at::matmul(shares.transpose(-1, -2), d).to(value_.scalar_type());
    }
  }
  if (alone_.defined()) dq = dq.masked_fill(alone_, 0);
  return {dq, dk, dv};
}

/// What the operation and its gradient share: the attributes, and the terms of their rules.
struct AttentionTerms : ops::AttentionForm {
  auto attributes() const { return std::tie(scale, causal, zeros); }

  /// Axes of batches, before others.
  static std::string term(const Specs& in, const char* others) {
    std::string text;
    for (int64_t a = 0; a + 3 < in[0].rank(); ++a) text += str("b", a, " ");
    return text + others;
  }
  std::string query(const Specs& in) const { return term(in, causal ? "!t h !d" : "t h !d"); }
  /// ", " and the mask, if it is the input of this number.
  static std::string mask(const Specs& in, size_t input) {
    if (in.size() <= input) return "";
    std::string text = " ,";
    for (int64_t a = 0; a < in[input].rank(); ++a) {
      const std::string names[] = {str("b", a), "h", "t", "s"};
      const int64_t last = std::max<int64_t>(a + 4 - in[input].rank(), 0);
      text += " " + (in[input].shape[size_t(a)] == 1 ? "." : names[last]);
    }
    return text;
  }
};

/// Gradients of query, key and value from these, the result, the logarithms of sums, dy and, if
/// there is one, the mask. Linear in shards of T, S and the width, so that they leave addends.
struct AttentionGradOp : AttentionTerms {
  static constexpr std::string_view name = "attention_grad";
  Specs infer(const Specs& in) const { return {in[0], in[1], in[2]}; }
  Rule rule(const Specs& in) const {
    // All that a step attends to decides what is masked.
    const bool whole = causal || in.size() > 6;
    const std::string keys = term(in, whole ? "!s h !d" : "s h !d"), values = term(in, "s h e"),
                      result = term(in, "t h e");
    Rule rule = Rule::parse(query(in) + " , " + keys + " , " + values + " , " + result + " , " +
                            term(in, "h t") + " , " + result + mask(in, 6) + " -> " + query(in) +
                            " , " + keys + " , " + values);
    const size_t steps = in[0].shape.size() - 3;
    for (const int factor : {rule.in[0][steps], rule.in[1][steps], rule.in[2].back()}) {
      FactorKind& kind = rule.factors[size_t(factor)];
      if (kind == FactorKind::pass) kind = FactorKind::reduce;
    }
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const LocalAttention block(in, *this, in.size() > 6 ? in[6] : at::Tensor());
    // Kernels read the sums in a row.
    const at::Tensor sums = in[4].to(at::toOpMathType(in[0].scalar_type()))
                                .reshape({-1, in[4].size(-2), in[4].size(-1)})
                                .contiguous();
    Tensors grads = block.backward(heads_first(in[5]), heads_first(in[3]), sums);
    for (size_t i = 0; i < grads.size(); ++i) grads[i] = steps_first(grads[i], in[i]);
    return grads;
  }
  static Samples<AttentionGradOp> samples();
};

struct AttentionOp : AttentionTerms {
  static constexpr std::string_view name = attention_name;
  Specs infer(const Specs& in) const;
  Rule rule(const Specs& in) const {
    return Rule::parse(query(in) + " , " + term(in, "!s h !d") + " , " + term(in, "s h e") +
                       mask(in, 3) + " -> " + term(in, "t h e") + " , " + term(in, "h t"));
  }
  Tensors forward(const LocalArgs& in) const {
    const auto [y, sums] =
        LocalAttention(in, *this, in.size() > 3 ? in[3] : at::Tensor()).forward();
    const at::Tensor out = steps_first(y, in[0]);
    std::vector<int64_t> shape = out.sizes().vec();
    shape.pop_back();
    std::swap(shape.back(), shape[shape.size() - 2]);
    return {out, sums.reshape(shape)};
  }
  static constexpr Saves saves{0b1111, 0b11};
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const;
  static Samples<AttentionOp> samples();
};

Specs AttentionOp::infer(const Specs& in) const {
  const Shape &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  const std::string received = to_string(q) + ", " + to_string(k) + " and " + to_string(v);
  check_floating(name, in[0]);
  check_same_dtype(name, {in[0], in[1], in[2]});
  const auto fit = [&] {
    if (q.size() < 4 || k.size() != q.size() || v.size() != q.size()) return false;
    const size_t steps = q.size() - 3;
    return std::equal(q.begin(), q.begin() + int64_t(steps), k.begin()) &&
           std::equal(k.begin(), k.end() - 1, v.begin()) && q[steps + 1] == k[steps + 1] &&
           q.back() == k.back();
  };
  if (!fit()) {
    throw ShapeError(std::string(name),
                     "query (batch, T, heads, dim) goes with key (batch, S, heads, dim) and value "
                     "(batch, S, heads, width)", received, "reshape an operand");
  }
  const size_t heads = q.size() - 2;
  if (k[heads - 1] == 0 || q.back() == 0 || v.back() == 0) {
    throw ShapeError(std::string(name), "there is a step to attend to, and a feature", received,
                     "pass tensors that are not empty");
  }
  Shape sums(q.begin(), q.begin() + int64_t(heads) - 1);
  sums.insert(sums.end(), {q[heads], q[heads - 1]});
  if (in.size() > 3) {
    Shape scores = sums;
    scores.push_back(k[heads - 1]);
    if (in[3].dtype != at::kBool || in[3].rank() != in[0].rank() ||
        broadcast_shape(name, {{scores, at::kBool}, in[3]}) != scores) {
      throw ShapeError(std::string(name), "the mask is bool, broadcast to " + to_string(scores),
                       to_string(in[3].shape), "reshape or cast it");
    }
  }
  Shape out = q;
  out.back() = v.back();
  return {{out, in[0].dtype}, {sums, at::toOpMathType(in[0].dtype)}};
}

Grads AttentionOp::gradient(const Saved& saved, const Cotangents& dys, Needs) const {
  DTensor value = saved.in(2), y = saved.out(0), dy = dys[0];
  const int64_t rank = y.rank(), last = rank - 1;
  if (!dy.defined()) dy = filled(y.shape(), 0, y.dtype(), y.layout());
  // The gradient of the sums is that of one more value, which is 1.
  if (dys[1].defined()) {
    std::vector<int64_t> axes;
    for (int64_t a = 0; a < last; ++a) axes.push_back(a);
    std::swap(axes.back(), axes[axes.size() - 2]);
    const DTensor more = ops::expand_dims(ops::transpose(dys[1], axes), last);
    dy = ops::concat({dy, ops::cast(more, dy.dtype())}, last);
    value = ops::pad(value, last, 0, 1, 1);
    y = ops::pad(y, last, 0, 1);
  }
  std::vector<DTensor> in = {saved.in(0), saved.in(1), value, y, saved.out(1), dy};
  if (saved.size() > 3) in.push_back(saved.in(3));
  const AttentionGradOp op{*this};
  Grads grads = dispatch(op_info<AttentionGradOp>(), &op, attribute_hash(op), in);
  if (dys[1].defined()) grads[2] = ops::slice(grads[2], last, 0, saved.shape(2).back());
  grads.resize(saved.size());
  return grads;
}

SampleInput mask_sample(const Shape& shape) { return {shape, at::kBool, 0, 2}; }

Samples<AttentionOp> AttentionOp::samples() {
  const auto of = [](const Shape& q, const Shape& k, const Shape& v, bool causal,
                     std::vector<SampleInput> mask = {}, at::ScalarType dtype = at::kDouble) {
    std::vector<SampleInput> in = {{q, dtype}, {k, dtype}, {v, dtype}};
    in.insert(in.end(), mask.begin(), mask.end());
    return Sample<AttentionOp>{in, {{{{}, causal, false}}}};
  };
  return {of({2, 3, 2, 2}, {2, 3, 2, 2}, {2, 3, 2, 2}, false),
          of({1, 3, 2, 2}, {1, 4, 2, 2}, {1, 4, 2, 2}, true),
          of({2, 3, 2, 2}, {2, 4, 2, 2}, {2, 4, 2, 2}, false, {mask_sample({2, 1, 3, 4})}),
          of({2, 1, 3, 2, 2}, {2, 1, 2, 2, 2}, {2, 1, 2, 2, 3}, true,
             {mask_sample({2, 1, 1, 1, 2})}),
          {{{{2, 3, 2, 2}}, {{2, 3, 2, 2}}, {{2, 3, 2, 2}}, mask_sample({1, 2, 3, 3})},
           {{{0.7, false, true}}}},
          of({2, 3, 2, 1}, {2, 3, 2, 1}, {2, 3, 2, 1}, true, {}, at::kFloat)};
}

Samples<AttentionGradOp> AttentionGradOp::samples() {
  const auto of = [](const Shape& q, const Shape& k, bool causal,
                     std::vector<SampleInput> mask = {}) {
    const SampleInput sums{{q[0], q[2], q[1]}, at::kDouble, 0.5, 1.5};
    std::vector<SampleInput> in = {{q}, {k}, {k}, {q}, sums, {q}};
    in.insert(in.end(), mask.begin(), mask.end());
    return Sample<AttentionGradOp>{in, {{{{}, causal, false}}}};
  };
  return {of({2, 3, 2, 2}, {2, 3, 2, 2}, false), of({2, 3, 1, 2}, {2, 4, 1, 2}, true),
          of({2, 3, 1, 2}, {2, 3, 1, 2}, false, {mask_sample({2, 1, 3, 3})})};
}

TESSERA_REGISTER_OP(AttentionGradOp);
TESSERA_REGISTER_OP(AttentionOp);

}  // namespace

namespace ops {

DTensor attention(const DTensor& query, const DTensor& key, const DTensor& value,
                  const DTensor& mask, const AttentionForm& form) {
  const AttentionOp op{{form}};
  if (!mask.defined()) return run_op(op, {query, key, value});
  Shape shape = mask.shape();
  while (int64_t(shape.size()) < query.rank()) shape.insert(shape.begin(), 1);
  return run_op(op, {query, key, value, reshape(mask, shape)});
}

}  // namespace ops
}  // namespace tessera
