#include <tessera/framework/ops/attention/internal/attention_terms.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Merges a mask's batch axes into one, of extent 1 if all of them are.
at::Tensor one_batch_axis(const at::Tensor& mask, const at::Tensor& query) {
  std::vector<int64_t> shape = mask.sizes().vec();
  int64_t own = 1, n = 1;
  for (size_t a = 0; a + 3 < shape.size(); ++a) {
    own *= shape[a];
    n *= query.size(int64_t(a));
  }
  if (own > 1) {
    for (size_t a = 0; a + 3 < shape.size(); ++a) shape[a] = query.size(int64_t(a));
    own = n;
  }
  return mask.expand(shape).reshape({own, mask.size(-3), mask.size(-2), mask.size(-1)});
}

/// Returns the bool mask of the first `lengths` keys of each row.
at::Tensor first_keys(const at::Tensor& lengths, int64_t keys) {
  return at::arange(keys, lengths.options()).lt(lengths.reshape({lengths.numel(), 1, 1, 1}));
}

/// Sums over the query heads that share a head of key and value: (…, S, heads, features) ->
/// (…, S, heads / group, features).
struct SharedHeadsSumOp {
  static constexpr std::string_view name = "shared_heads_sum";
  int64_t group = 1;
  auto attributes() const { return std::tie(group); }
  Specs infer(const Specs& in) const {
    Spec out = in[0];
    out.shape[size_t(in[0].rank() - 2)] /= group;
    return {out};
  }
  Rule rule(const Specs& in) const {
    std::string text;
    for (int64_t a = 0; a < in[0].rank(); ++a) {
      text += str(a == in[0].rank() - 2 ? "~a" : "a", a, " ");
    }
    return Rule::parse(text + "-> " + text).passing(Passes::sums);
  }
  Interval window(size_t, int64_t, Interval out, const Specs&) const {
    return {out.lo * group, out.hi * group};
  }
  Tensors forward(const LocalArgs& in) const { return {in[0].unflatten(-2, {-1, group}).sum(-2)}; }
  static Samples<SharedHeadsSumOp> samples() {
    return {{{{{2, 3, 4, 2}}}, {2}}, {{{{1, 2, 9, 2}}}, {3}}};
  }
};

TESSERA_REGISTER_OP(SharedHeadsSumOp);

}  // namespace

at::Tensor detail::heads_first(const at::Tensor& x) {
  const at::Tensor dense = x.stride(-1) == 1 ? x : x.contiguous();
  int64_t n = 1;
  for (int64_t a = 0; a + 3 < x.dim(); ++a) n *= x.size(a);
  return dense.reshape({n, x.size(-3), x.size(-2), x.size(-1)}).transpose(1, 2);
}

at::Tensor detail::steps_first(const at::Tensor& x, const at::Tensor& like) {
  std::vector<int64_t> shape = like.sizes().vec();
  shape.back() = x.size(-1);
  shape[shape.size() - 2] = x.size(1);
  return x.transpose(1, 2).contiguous().view(shape);
}

Tensors detail::attention_outputs(const AttentionResult& result, const at::Tensor& query) {
  const at::Tensor out = steps_first(result.first, query);
  std::vector<int64_t> shape = out.sizes().vec();
  shape.pop_back();
  std::swap(shape.back(), shape[shape.size() - 2]);
  return {out, result.second.reshape(shape)};
}

int64_t AttentionTerms::group(const Specs& in) {
  const size_t heads = size_t(heads_axis(in));
  return in[1].shape[heads] == 0 ? 1 : in[0].shape[heads] / in[1].shape[heads];
}

namespace {

std::string batch_and(int64_t axes, const std::string& rest) {
  std::string text;
  for (int64_t a = 0; a < axes; ++a) text += str("b", a, " ");
  return text + rest;
}

std::string heads_of(const Specs& in) { return AttentionTerms::group(in) > 1 ? " ~h " : " h "; }

}  // namespace

std::string AttentionTerms::term(const Specs& in, const std::string& steps,
                                 const std::string& features) {
  return batch_and(steps_axis(in), steps + heads_of(in) + features);
}

std::string AttentionTerms::sums(const Specs& in) {
  return batch_and(steps_axis(in), heads_of(in) + "t");
}

std::string AttentionTerms::masks(const Specs& in, size_t first, const std::string& keys) {
  std::string text;
  for (size_t i = first; i < in.size(); ++i) {
    text += " ,";
    for (int64_t a = 0; a < in[i].rank(); ++a) {
      const std::string names[] = {str("b", a), "h", "t", keys};
      const int64_t last =
          in[i].dtype == at::kLong ? 0 : std::max<int64_t>(a + 4 - in[i].rank(), 0);
      text += " " + (in[i].shape[size_t(a)] == 1 ? "." : names[last]);
    }
  }
  return text;
}

Interval AttentionTerms::window(size_t input, int64_t, Interval out, const Specs& in) const {
  return input == 1 || input == 2 ? shared_heads(out, group(in)) : out;
}

Specs AttentionTerms::infer_values(std::string_view name, const Specs& in) const {
  const Shape &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  const std::string received = to_string(q) + ", " + to_string(k) + " and " + to_string(v);
  check_floating(name, in[0]);
  check_same_dtype(name, {in[0], in[1], in[2]});
  const auto fit = [&] {
    if (q.size() < 4 || k.size() != q.size() || v.size() != q.size()) return false;
    const size_t steps = q.size() - 3;
    const int64_t heads = q[steps + 1], shared = k[steps + 1];
    const bool groups = shared > 0 && heads > 0 && heads % shared == 0;
    return std::equal(q.begin(), q.begin() + int64_t(steps), k.begin()) &&
           std::equal(k.begin(), k.end() - 1, v.begin()) && q.back() == k.back() &&
           (groups || heads == shared);
  };
  if (!fit()) {
    throw ShapeError(
        std::string(name),
        "query (batch, T, heads, dim) needs key (batch, S, heads, dim) and value (batch, S, "
        "heads, width); the latter's heads may be a divisor of the query's",
        received, "reshape an operand");
  }
  const size_t heads = q.size() - 2;
  if (k[heads - 1] == 0 || q.back() == 0 || v.back() == 0) {
    throw ShapeError(std::string(name), "S, dim and width must be at least 1", received,
                     "pass tensors that are not empty");
  }
  if (reach && *reach < 1) {
    throw ConfigError(std::string(name), "window must be at least 1", str(*reach),
                      "leave it out for no window");
  }
  const Shape batch(q.begin(), q.begin() + int64_t(heads) - 1);
  Shape sums = batch;
  sums.insert(sums.end(), {q[heads], q[heads - 1]});
  Shape scores = sums;
  scores.push_back(k[heads - 1]);
  for (size_t i = 3; i < in.size(); ++i) {
    if (in[i].dtype == at::kLong && i + 1 == in.size()) {
      if (in[i].shape == batch) continue;
      throw ShapeError(std::string(name),
                       "lengths must have the shape of the batch axes, " + to_string(batch),
                       to_string(in[i].shape), "reshape it");
    }
    if ((in[i].dtype != at::kBool && in[i].dtype != in[0].dtype) || in[i].rank() != in[0].rank() ||
        broadcast_shape(name, {{scores, in[i].dtype}, in[i]}) != scores) {
      throw ShapeError(std::string(name),
                       "a mask is bool, or of the query's dtype to be added to the scores, and is "
                       "broadcast to " +
                           to_string(scores),
                       to_string(in[i].shape) + " of " + dtype_name(in[i].dtype),
                       "reshape or cast it");
    }
  }
  Shape out = q;
  out.back() = v.back();
  return {{out, in[0].dtype}, {sums, at::toOpMathType(in[0].dtype)}};
}

Specs AttentionTerms::infer_gradients(const Specs& in) {
  Specs out = {in[0], in[1], in[2]};
  const size_t heads = size_t(heads_axis(in));
  for (size_t i : {1, 2}) out[i].shape[heads] = in[0].shape[heads];
  return out;
}

BlockAttention AttentionTerms::block_attention(const LocalArgs& in) const {
  const int64_t steps = in.spec(0).rank() - 3, dim = in.spec(0).shape.back();
  return {.scale = scale.value_or(1 / std::sqrt(double(dim))),
          .causal = causal,
          .zeros = zeros,
          .value_is_sharded = in.range(2, steps + 2).size() < in.spec(2).shape.back(),
          .window = reach,
          .first = in.range(0, steps).lo,
          .heads = in.range(0, steps + 1),
          .shared_heads = in.range(1, steps + 1),
          .group = group({in.spec(0), in.spec(1)})};
}

std::vector<at::Tensor> AttentionTerms::masks_of(const LocalArgs& in, size_t first) {
  std::vector<at::Tensor> masks;
  const int64_t keys = in.spec(1).shape[in.spec(1).shape.size() - 3];
  for (size_t i = first; i < in.size(); ++i) {
    masks.push_back(in[i].scalar_type() == at::kLong ? first_keys(in[i], keys)
                                                     : one_batch_axis(in[i], in[0]));
  }
  return masks;
}

Tensors AttentionTerms::values(const LocalArgs& in) const {
  BlockAttention block = block_attention(in);
  block.masks = masks_of(in, values_masks);
  const LocalAttention local(heads_first(in[0]), heads_first(in[1]), heads_first(in[2]), block);
  return attention_outputs(local.forward(), in[0]);
}

namespace {

/// Returns a block's log-sum-exp as (n, heads, T), in the dtype that kernels read.
at::Tensor lse_of(const LocalArgs& in) {
  return in[4]
      .to(at::toOpMathType(in[0].scalar_type()))
      .reshape({-1, in[4].size(-2), in[4].size(-1)});
}

}  // namespace

Tensors AttentionTerms::gradients(const LocalArgs& in) const {
  BlockAttention block = block_attention(in);
  block.masks = masks_of(in, gradients_masks);
  const LocalAttention local(heads_first(in[0]), heads_first(in[1]), heads_first(in[2]), block);
  Tensors grads = local.backward(heads_first(in[5]), heads_first(in[3]), lse_of(in));
  for (size_t i = 0; i < grads.size(); ++i) grads[i] = steps_first(grads[i], in[i]);
  return grads;
}

at::Tensor AttentionTerms::mask_gradient(const LocalArgs& in, size_t mask) const {
  BlockAttention block = block_attention(in);
  block.masks = masks_of(in, gradients_masks);
  const LocalAttention local(heads_first(in[0]), heads_first(in[1]), heads_first(in[2]), block);
  const at::Tensor all =
      local.mask_gradient(block.masks[mask], heads_first(in[5]), heads_first(in[3]), lse_of(in));
  // Restores the batch axes, and sums over the axes along which the mask was broadcast.
  const at::Tensor& own = in[gradients_masks + mask];
  std::vector<int64_t> shape = own.sizes().vec();
  if (all.size(0) > 1) {
    for (size_t a = 0; a + 3 < shape.size(); ++a) shape[a] = in[0].size(int64_t(a));
  }
  return all.reshape(shape).sum_to_size(own.sizes()).to(own.scalar_type());
}

namespace {

/// Gradient of a numeric mask, from the inputs of the gradients of query, key and value. Linear in
/// shards of the value's width and of the axes along which the mask was broadcast.
struct AttentionMaskGradOp : AttentionTerms {
  static constexpr std::string_view name = "attention_mask_grad";
  int64_t mask = 0;  ///< counted from gradients_masks on
  auto attributes() const { return std::tie(scale, causal, zeros, reach, mask); }
  Specs infer(const Specs& in) const { return {in[gradients_masks + size_t(mask)]}; }
  Rule rule(const Specs& in) const {
    const std::string query = term(in, "t", "!d"), keys = term(in, "!s", "!d"),
                      values = term(in, "s", "e"), result = term(in, "t", "e");
    Specs one(in.begin(), in.begin() + gradients_masks);
    one.push_back(in[gradients_masks + size_t(mask)]);
    return Rule::parse(query + " , " + keys + " , " + values + " , " + result + " , " + sums(in) +
                       " , " + result + masks(in, gradients_masks) + " -> " +
                       masks(one, gradients_masks).substr(2));
  }
  Tensors forward(const LocalArgs& in) const { return {mask_gradient(in, size_t(mask))}; }
  static Samples<AttentionMaskGradOp> samples() {
    const auto of = [](const Shape& q, const Shape& k, const AttentionTerms& how,
                       const Shape& mask) {
      const SampleInput sums{{q[0], q[2], q[1]}, at::kDouble, 0.5, 1.5};
      return Sample<AttentionMaskGradOp>{{{q}, {k}, {k}, {q}, sums, {q}, {mask}}, {{how}, 0}};
    };
    return {of({2, 3, 2, 2}, {2, 4, 2, 2}, {}, {1, 2, 3, 4}),
            of({2, 3, 1, 2}, {2, 3, 1, 2}, {.causal = true}, {2, 1, 1, 3}),
            of({1, 2, 4, 2}, {1, 3, 2, 2}, {}, {1, 4, 2, 3})};
  }
};

TESSERA_REGISTER_OP(AttentionMaskGradOp);

}  // namespace

Grads detail::attention_gradient(
    const AttentionTerms& terms, const Saved& saved, const Cotangents& dys, Needs needs,
    const std::function<Grads(const std::vector<DTensor>&)>& gradients) {
  DTensor value = saved.in(2), y = saved.out(0), dy = dys[0];
  const int64_t rank = y.rank(), last = rank - 1;
  if (!dy.defined()) dy = filled(y.shape(), 0, y.dtype(), y.layout());
  // The log-sum-exp's gradient is that of one more feature of the value, which is 1.
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
  for (size_t i = 3; i < saved.size(); ++i) in.push_back(saved.in(i));
  Grads grads = gradients(in);
  const int64_t group = AttentionTerms::group({{saved.shape(0)}, {saved.shape(1)}});
  for (size_t i = 1; group > 1 && i < 3; ++i) {
    grads[i] = run_op(SharedHeadsSumOp{group}, {grads[i]});
  }
  if (dys[1].defined()) grads[2] = ops::slice(grads[2], last, 0, saved.shape(2).back());
  grads.resize(saved.size());
  for (size_t i = AttentionTerms::values_masks; i < saved.size(); ++i) {
    if (!needs[i]) continue;
    const auto mask = static_cast<int64_t>(i - AttentionTerms::values_masks);
    grads[i] = run_op(AttentionMaskGradOp{terms, mask}, in);
  }
  return grads;
}

}  // namespace tessera
