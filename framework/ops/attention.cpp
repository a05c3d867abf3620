#include <tessera/framework/ops/attention.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/local_attention.hpp>
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
  shape[shape.size() - 2] = x.size(1);
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

/// The mask of keys that numbers of them stand for.
at::Tensor first_keys(const at::Tensor& lengths, int64_t keys) {
  return at::arange(keys, lengths.options()).lt(lengths.reshape({-1, 1, 1, 1}));
}

/// What the operations share: the attributes, and the terms of their rules.
struct AttentionTerms {
  std::optional<double> scale = std::nullopt;
  bool causal = false, zeros = false;
  std::optional<int64_t> reach = std::nullopt;  ///< the form's window
  auto attributes() const { return std::tie(scale, causal, zeros, reach); }

  static int64_t steps_axis(const Specs& in) { return in[0].rank() - 3; }
  static int64_t heads_axis(const Specs& in) { return in[0].rank() - 2; }
  /// Heads of the query for each of key and value.
  static int64_t group(const Specs& in) {
    const size_t heads = size_t(heads_axis(in));
    return in[1].shape[heads] == 0 ? 1 : in[0].shape[heads] / in[1].shape[heads];
  }
  /// Shared heads are those that the query's read, wherever they lie.
  static std::string heads(const Specs& in) { return group(in) > 1 ? " ~h " : " h "; }
  static Interval window_of(size_t input, Interval out, const Specs& in) {
    return input == 1 || input == 2 ? shared_heads(out, group(in)) : out;
  }
  /// Axes of batches, steps, heads and features.
  static std::string term(const Specs& in, const std::string& steps, const std::string& features) {
    std::string text;
    for (int64_t a = 0; a < steps_axis(in); ++a) text += str("b", a, " ");
    return text + steps + heads(in) + features;
  }
  /// Axes of the logarithms of sums.
  static std::string sums(const Specs& in) {
    std::string text;
    for (int64_t a = 0; a < steps_axis(in); ++a) text += str("b", a, " ");
    return text + heads(in) + "t";
  }
  /// ", " and each mask, and the numbers of keys, from this input on.
  static std::string masks(const Specs& in, size_t first) {
    std::string text;
    for (size_t i = first; i < in.size(); ++i) {
      text += " ,";
      for (int64_t a = 0; a < in[i].rank(); ++a) {
        const std::string names[] = {str("b", a), "h", "t", "s"};
        const int64_t last =
            in[i].dtype == at::kBool ? std::max<int64_t>(a + 4 - in[i].rank(), 0) : 0;
        text += " " + (in[i].shape[size_t(a)] == 1 ? "." : names[last]);
      }
    }
    return text;
  }
  LocalAttention local(const LocalArgs& in, size_t first_mask) const;
};

LocalAttention AttentionTerms::local(const LocalArgs& in, size_t first_mask) const {
  const int64_t steps = in.spec(0).rank() - 3, dim = in.spec(0).shape.back();
  const Specs specs = {in.spec(0), in.spec(1)};
  AttentionPart part{.scale = scale.value_or(1 / std::sqrt(double(dim))),
                     .causal = causal,
                     .zeros = zeros,
                     .window = reach,
                     .first = in.range(0, steps).lo,
                     .heads = in.range(0, steps + 1),
                     .shared_heads = in.range(1, steps + 1),
                     .group = group(specs)};
  for (size_t i = first_mask; i < in.size(); ++i) {
    part.masks.push_back(in[i].scalar_type() == at::kBool ? one_batch_axis(in[i], in[0])
                                                          : first_keys(in[i], in[1].size(-3)));
  }
  return {heads_first(in[0]), heads_first(in[1]), heads_first(in[2]), part};
}

/// The sum over the heads of the query that share one of key and value: (…, S, heads, features) ->
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
  Tensors forward(const LocalArgs& in) const {
    return {in[0].unflatten(-2, {-1, group}).sum(-2)};
  }
  static Samples<SharedHeadsSumOp> samples() {
    return {{{{{2, 3, 4, 2}}}, {2}}, {{{{1, 2, 9, 2}}}, {3}}};
  }
};

/// Gradients of query, key and value from these, the result, the logarithms of sums, dy and the
/// masks; those of key and value for each head of the query. Linear in shards of T, S and the
/// width, so that they leave addends.
struct AttentionGradOp : AttentionTerms {
  static constexpr std::string_view name = "attention_grad";
  Specs infer(const Specs& in) const {
    Specs out = {in[0], in[1], in[2]};
    const size_t heads = size_t(heads_axis(in));
    for (size_t i : {1, 2}) out[i].shape[heads] = in[0].shape[heads];
    return out;
  }
  Rule rule(const Specs& in) const {
    // All that a step attends to decides what is masked.
    const bool whole = causal || reach || in.size() > 6;
    const std::string query = term(in, "t", "!d"), keys = term(in, whole ? "!s" : "s", "!d"),
                      values = term(in, "s", "e"), result = term(in, "t", "e");
    Rule rule = Rule::parse(query + " , " + keys + " , " + values + " , " + result + " , " +
                            sums(in) + " , " + result + masks(in, 6) + " -> " + query + " , " +
                            keys + " , " + values);
    const size_t steps = size_t(steps_axis(in));
    for (const int factor : {rule.in[0][steps], rule.in[1][steps], rule.in[2].back()}) {
      FactorKind& kind = rule.factors[size_t(factor)];
      if (kind == FactorKind::pass) kind = FactorKind::reduce;
    }
    return rule;
  }
  Interval window(size_t input, int64_t, Interval out, const Specs& in) const {
    return window_of(input, out, in);
  }
  Tensors forward(const LocalArgs& in) const {
    // Kernels read the sums in a row.
    const at::Tensor sums = in[4].to(at::toOpMathType(in[0].scalar_type()))
                                .reshape({-1, in[4].size(-2), in[4].size(-1)});
    Tensors grads = local(in, 6).backward(heads_first(in[5]), heads_first(in[3]), sums);
    for (size_t i = 0; i < grads.size(); ++i) grads[i] = steps_first(grads[i], in[i]);
    return grads;
  }
  static Samples<AttentionGradOp> samples();
};

struct AttentionOp : AttentionTerms {
  static constexpr std::string_view name = attention_name;
  Specs infer(const Specs& in) const;
  Rule rule(const Specs& in) const {
    return Rule::parse(term(in, "t", "!d") + " , " + term(in, "!s", "!d") + " , " +
                       term(in, "s", "e") + masks(in, 3) + " -> " + term(in, "t", "e") + " , " +
                       sums(in));
  }
  Interval window(size_t input, int64_t, Interval out, const Specs& in) const {
    return window_of(input, out, in);
  }
  Tensors forward(const LocalArgs& in) const {
    const auto [y, sums] = local(in, 3).forward();
    const at::Tensor out = steps_first(y, in[0]);
    std::vector<int64_t> shape = out.sizes().vec();
    shape.pop_back();
    std::swap(shape.back(), shape[shape.size() - 2]);
    return {out, sums.reshape(shape)};
  }
  // As many masks as there are.
  static constexpr Saves saves{0xffff, 0b11};
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
    const int64_t heads = q[steps + 1], shared = k[steps + 1];
    const bool groups = shared > 0 && heads > 0 && heads % shared == 0;
    return std::equal(q.begin(), q.begin() + int64_t(steps), k.begin()) &&
           std::equal(k.begin(), k.end() - 1, v.begin()) && q.back() == k.back() &&
           (groups || heads == shared);
  };
  if (!fit()) {
    throw ShapeError(std::string(name),
                     "query (batch, T, heads, dim) goes with key (batch, S, heads, dim) and value "
                     "(batch, S, heads, width), which may have a divisor of the query's heads",
                     received, "reshape an operand");
  }
  const size_t heads = q.size() - 2;
  if (k[heads - 1] == 0 || q.back() == 0 || v.back() == 0) {
    throw ShapeError(std::string(name), "there is a step to attend to, and a feature", received,
                     "pass tensors that are not empty");
  }
  if (reach && *reach < 1) {
    throw ConfigError(std::string(name), "a window has at least 1 step", str(*reach),
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
      throw ShapeError(std::string(name), "there is a length for each row, " + to_string(batch),
                       to_string(in[i].shape), "reshape it");
    }
    if (in[i].dtype != at::kBool || in[i].rank() != in[0].rank() ||
        broadcast_shape(name, {{scores, at::kBool}, in[i]}) != scores) {
      throw ShapeError(std::string(name), "the mask is bool, broadcast to " + to_string(scores),
                       to_string(in[i].shape), "reshape or cast it");
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
  for (size_t i = 3; i < saved.size(); ++i) in.push_back(saved.in(i));
  const AttentionGradOp op{*this};
  Grads grads = dispatch(op_info<AttentionGradOp>(), &op, attribute_hash(op), in);
  const int64_t group = AttentionTerms::group({{saved.shape(0)}, {saved.shape(1)}});
  for (size_t i = 1; group > 1 && i < 3; ++i) {
    grads[i] = run_op(SharedHeadsSumOp{group}, {grads[i]});
  }
  if (dys[1].defined()) grads[2] = ops::slice(grads[2], last, 0, saved.shape(2).back());
  grads.resize(saved.size());
  return grads;
}

SampleInput mask_sample(const Shape& shape) { return {shape, at::kBool, 0, 2}; }

Samples<AttentionOp> AttentionOp::samples() {
  const auto of = [](const Shape& q, const Shape& k, const Shape& v, const AttentionTerms& how,
                     std::vector<SampleInput> mask = {}, at::ScalarType dtype = at::kDouble) {
    std::vector<SampleInput> in = {{q, dtype}, {k, dtype}, {v, dtype}};
    in.insert(in.end(), mask.begin(), mask.end());
    return Sample<AttentionOp>{in, {how}};
  };
  const AttentionTerms causal{.causal = true};
  return {of({2, 3, 2, 2}, {2, 3, 2, 2}, {2, 3, 2, 2}, {}),
          of({1, 3, 2, 2}, {1, 4, 2, 2}, {1, 4, 2, 2}, causal),
          of({2, 3, 2, 2}, {2, 4, 2, 2}, {2, 4, 2, 2}, {}, {mask_sample({2, 1, 3, 4})}),
          of({2, 1, 3, 2, 2}, {2, 1, 2, 2, 2}, {2, 1, 2, 2, 3}, causal,
             {mask_sample({2, 1, 1, 1, 2})}),
          of({2, 3, 2, 2}, {2, 3, 2, 2}, {2, 3, 2, 2}, {.scale = 0.7, .zeros = true},
             {mask_sample({1, 2, 3, 3})}),
          of({2, 3, 2, 1}, {2, 3, 2, 1}, {2, 3, 2, 1}, causal, {}, at::kFloat),
          of({2, 2, 6, 2}, {2, 3, 2, 2}, {2, 3, 2, 2}, {}),
          of({1, 3, 4, 2}, {1, 3, 1, 2}, {1, 3, 1, 1}, causal, {mask_sample({1, 4, 1, 3})}),
          of({1, 4, 2, 2}, {1, 5, 2, 2}, {1, 5, 2, 2}, {.reach = 2}),
          of({2, 6, 2, 1}, {2, 3, 1, 1}, {2, 3, 1, 1}, {.causal = true, .zeros = true, .reach = 2},
             {mask_sample({2, 1, 6, 1})}),
          of({2, 3, 1, 2}, {2, 4, 1, 2}, {2, 4, 1, 2}, {}, {{{2}, at::kLong, 0, 5}}),
          of({2, 3, 1, 1}, {2, 3, 1, 1}, {2, 3, 1, 1}, causal,
             {mask_sample({2, 1, 1, 3}), {{2}, at::kLong, 0, 4}})};
}

Samples<AttentionGradOp> AttentionGradOp::samples() {
  const auto of = [](const Shape& q, const Shape& k, const AttentionTerms& how,
                     std::vector<SampleInput> mask = {}) {
    const SampleInput sums{{q[0], q[2], q[1]}, at::kDouble, 0.5, 1.5};
    std::vector<SampleInput> in = {{q}, {k}, {k}, {q}, sums, {q}};
    in.insert(in.end(), mask.begin(), mask.end());
    return Sample<AttentionGradOp>{in, {how}};
  };
  return {of({2, 3, 2, 2}, {2, 3, 2, 2}, {}), of({2, 3, 1, 2}, {2, 4, 1, 2}, {.causal = true}),
          of({2, 3, 1, 2}, {2, 3, 1, 2}, {}, {mask_sample({2, 1, 3, 3})}),
          of({1, 2, 6, 2}, {1, 3, 2, 2}, {}),
          of({2, 4, 1, 2}, {2, 4, 1, 2}, {.causal = true, .reach = 2}, {{{2}, at::kLong, 0, 5}})};
}

TESSERA_REGISTER_OP(AttentionGradOp);
TESSERA_REGISTER_OP(AttentionOp);
TESSERA_REGISTER_OP(SharedHeadsSumOp);

}  // namespace

namespace ops {

DTensor attention(const DTensor& query, const DTensor& key, const DTensor& value,
                  const DTensor& mask, const AttentionForm& form) {
  const AttentionOp op{{form.scale, form.causal, form.zeros, form.window}};
  std::vector<DTensor> in = {query, key, value}, masks = form.masks;
  if (mask.defined()) masks.insert(masks.begin(), mask);
  for (const DTensor& each : masks) {
    Shape shape = each.shape();
    while (int64_t(shape.size()) < query.rank()) shape.insert(shape.begin(), 1);
    in.push_back(reshape(each, shape));
  }
  if (form.lengths.defined()) in.push_back(as_indices(form.lengths));
  return run_op(op, in);
}

}  // namespace ops
}  // namespace tessera
