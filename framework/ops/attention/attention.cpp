#include <tessera/framework/ops/attention/attention.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/ops/attention/internal/attention_terms.hpp>
#include <tessera/framework/ops/attention/internal/ring_attention.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Gradients of query, key and value from these, the output, the log-sum-exp, dy and the masks;
/// those of key and value are per query head. Linear in shards of T, S and the width, which
/// therefore leave partial sums.
struct AttentionGradOp : AttentionTerms {
  static constexpr std::string_view name = "attention_grad";
  Specs infer(const Specs& in) const { return infer_gradients(in); }
  Rule rule(const Specs& in) const {
    // Masking depends on all keys of a step.
    const bool all_keys = causal || reach || in.size() > gradients_masks;
    const std::string query = term(in, "t", "!d"), keys = term(in, all_keys ? "!s" : "s", "!d"),
                      values = term(in, "s", "e"), result = term(in, "t", "e");
    Rule rule = Rule::parse(query + " , " + keys + " , " + values + " , " + result + " , " +
                            sums(in) + " , " + result + masks(in, gradients_masks) + " -> " +
                            query + " , " + keys + " , " + values);
    const size_t steps = size_t(steps_axis(in));
    for (const int factor : {rule.in[0][steps], rule.in[1][steps], rule.in[2].back()}) {
      FactorKind& kind = rule.factors[size_t(factor)];
      if (kind == FactorKind::pass) kind = FactorKind::reduce;
    }
    return rule;
  }
  Tensors forward(const LocalArgs& in) const { return gradients(in); }
  static Samples<AttentionGradOp> samples();
};

struct AttentionOp : AttentionTerms {
  static constexpr std::string_view name = "attention";
  Specs infer(const Specs& in) const { return infer_values(name, in); }
  Rule rule(const Specs& in) const {
    return Rule::parse(term(in, "t", "!d") + " , " + term(in, "!s", "!d") + " , " +
                       term(in, "s", "e") + masks(in, values_masks) + " -> " + term(in, "t", "e") +
                       " , " + sums(in));
  }
  Tensors forward(const LocalArgs& in) const { return values(in); }
  // All inputs, however many masks there are.
  static constexpr Saves saves{0xffff, 0b11};
  Grads gradient(const Saved& saved, const Cotangents& dys, Needs needs) const {
    return attention_gradient(*this, saved, dys, needs, [this](const std::vector<DTensor>& in) {
      const AttentionGradOp op{*this};
      return dispatch(op_info<AttentionGradOp>(), &op, attribute_hash(op), in);
    });
  }
  static Samples<AttentionOp> samples();
};

SampleInput mask_sample(const Shape& shape) { return {shape, at::kBool, 0, 2}; }

Samples<AttentionOp> AttentionOp::samples() {
  const auto of = [](const Shape& q, const Shape& k, const Shape& v, const AttentionTerms& how,
                     std::vector<SampleInput> mask = {}, at::ScalarType dtype = at::kDouble) {
    std::vector<SampleInput> in = {{q, dtype}, {k, dtype}, {v, dtype}};
    in.insert(in.end(), mask.begin(), mask.end());
    return Sample<AttentionOp>{in, {how}};
  };
  const AttentionTerms causal{.causal = true};
  return {
      of({2, 3, 2, 2}, {2, 3, 2, 2}, {2, 3, 2, 2}, {}),
      of({1, 3, 2, 2}, {1, 4, 2, 2}, {1, 4, 2, 2}, causal),
      of({2, 3, 2, 2}, {2, 4, 2, 2}, {2, 4, 2, 2}, {}, {mask_sample({2, 1, 3, 4})}),
      of({2, 1, 3, 2, 2}, {2, 1, 2, 2, 2}, {2, 1, 2, 2, 3}, causal, {mask_sample({2, 1, 1, 1, 2})}),
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
         {mask_sample({2, 1, 1, 3}), {{2}, at::kLong, 0, 4}}),
      of({2, 5, 2, 2}, {2, 5, 2, 2}, {2, 5, 2, 3}, {}),
      of({2, 3, 2, 2}, {2, 4, 2, 2}, {2, 4, 2, 2}, {}, {{{1, 2, 3, 4}}}),
      of({1, 3, 4, 2}, {1, 3, 2, 2}, {1, 3, 2, 1}, causal,
         {{{1, 4, 1, 3}}, mask_sample({1, 1, 3, 3})}),
      of({2, 3, 1, 2}, {2, 3, 1, 2}, {2, 3, 1, 2}, {.reach = 2},
         {{{2, 1, 3, 1}}, {{2}, at::kLong, 0, 4}})};
}

Samples<AttentionGradOp> AttentionGradOp::samples() {
  const auto of = [](const Shape& q, const Shape& k, const AttentionTerms& how,
                     std::vector<SampleInput> mask = {}) {
    const SampleInput sums{{q[0], q[2], q[1]}, at::kDouble, 0.5, 1.5};
    std::vector<SampleInput> in = {{q}, {k}, {k}, {q}, sums, {q}};
    in.insert(in.end(), mask.begin(), mask.end());
    return Sample<AttentionGradOp>{in, {how}};
  };
  return {of({2, 3, 2, 2}, {2, 3, 2, 2}, {}),
          of({2, 3, 1, 2}, {2, 4, 1, 2}, {.causal = true}),
          of({2, 3, 1, 2}, {2, 3, 1, 2}, {}, {mask_sample({2, 1, 3, 3})}),
          of({1, 2, 6, 2}, {1, 3, 2, 2}, {}),
          of({2, 4, 1, 2}, {2, 4, 1, 2}, {.causal = true, .reach = 2}, {{{2}, at::kLong, 0, 5}}),
          of({2, 3, 2, 2}, {2, 3, 2, 2}, {}, {{{1, 2, 3, 3}}})};
}

TESSERA_REGISTER_OP(AttentionGradOp);
TESSERA_REGISTER_OP(AttentionOp);

}  // namespace

namespace ops {

std::pair<DTensor, DTensor> attention_and_logsumexp(const DTensor& query, const DTensor& key,
                                                    const DTensor& value, const DTensor& mask,
                                                    const SdpaOptions& options) {
  const AttentionTerms terms{options.scale, options.causal, options.zeros, options.window};
  std::vector<DTensor> in = {query, key, value}, masks = options.masks;
  if (mask.defined()) masks.insert(masks.begin(), mask);
  for (const DTensor& each : masks) {
    Shape shape = each.shape();
    while (int64_t(shape.size()) < query.rank()) shape.insert(shape.begin(), 1);
    in.push_back(reshape(each, shape));
  }
  if (options.lengths.defined()) in.push_back(to_int64_indices(options.lengths));
  if (is_ring(query, key, value)) {
    return ring_attention(terms, options.zigzag.value_or(options.causal && !options.window), in);
  }
  const AttentionOp op{terms};
  std::vector<DTensor> both = dispatch(op_info<AttentionOp>(), &op, attribute_hash(op), in);
  return {both[0], both[1]};
}

DTensor attention(const DTensor& query, const DTensor& key, const DTensor& value,
                  const DTensor& mask, const SdpaOptions& options) {
  return attention_and_logsumexp(query, key, value, mask, options).first;
}

}  // namespace ops
}  // namespace tessera
