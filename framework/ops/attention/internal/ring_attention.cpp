#include <tessera/framework/ops/attention/internal/ring_attention.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/attention/internal/ring_run.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Attributes and rules of attention, except that steps of queries and of keys share a factor, and
/// masks are replicated along the keys.
struct RingTerms : AttentionTerms {
  bool zigzag = false;
  auto attributes() const { return std::tie(scale, causal, zeros, reach, zigzag); }

  static void check_steps(std::string_view name, const Specs& in) {
    const size_t steps = size_t(steps_axis(in));
    if (in[1].shape[steps] == in[0].shape[steps]) return;
    throw ShapeError(std::string(name), "there must be as many keys as queries",
                     to_string(in[0].shape) + " and " + to_string(in[1].shape),
                     "pass the keys replicated");
  }
  static std::string replicated_masks(const Specs& in, size_t first) {
    return masks(in, first, "!s");
  }
};

struct RingAttentionGradOp : RingTerms {
  static constexpr std::string_view name = "ring_attention_grad";
  Specs infer(const Specs& in) const {
    check_steps(name, in);
    return infer_gradients(in);
  }
  Rule rule(const Specs& in) const {
    const std::string query = term(in, "t", "!d"), value = term(in, "t", "e");
    Rule rule = Rule::parse(query + " , " + query + " , " + value + " , " + value + " , " +
                            sums(in) + " , " + value + replicated_masks(in, gradients_masks) +
                            " -> " + query + " , " + query + " , " + value);
    FactorKind& width = rule.factors[size_t(rule.in[2].back())];
    if (width == FactorKind::pass) width = FactorKind::reduce;
    return rule;
  }
  Tensors forward(const LocalArgs& in) const { return gradients(in); }
  std::vector<Tensors> forward_all(const BlockGrid& grid) const {
    return RingRun(*this, zigzag, grid, gradients_masks).backward();
  }
  static Samples<RingAttentionGradOp> samples();
};

struct RingAttentionOp : RingTerms {
  static constexpr std::string_view name = "ring_attention";
  Specs infer(const Specs& in) const {
    const Specs out = infer_values(name, in);
    check_steps(name, in);
    return out;
  }
  Rule rule(const Specs& in) const {
    const std::string query = term(in, "t", "!d"), value = term(in, "t", "e");
    return Rule::parse(query + " , " + query + " , " + value + replicated_masks(in, values_masks) +
                       " -> " + value + " , " + sums(in));
  }
  Tensors forward(const LocalArgs& in) const { return values(in); }
  std::vector<Tensors> forward_all(const BlockGrid& grid) const {
    return RingRun(*this, zigzag, grid, values_masks).forward();
  }
  // All inputs, however many masks there are.
  static constexpr Saves saves{0xffff, 0b11};
  Grads gradient(const Saved& saved, const Cotangents& dys, Needs needs) const {
    return attention_gradient(*this, saved, dys, needs, [this](const std::vector<DTensor>& in) {
      const RingAttentionGradOp op{*this};
      return dispatch(op_info<RingAttentionGradOp>(), &op, attribute_hash(op), in);
    });
  }
  static Samples<RingAttentionOp> samples();
};

RingTerms ring_terms(const AttentionTerms& terms, bool zigzag = false) { return {terms, zigzag}; }

Samples<RingAttentionOp> RingAttentionOp::samples() {
  const auto of = [](const Shape& q, const Shape& k, const RingTerms& how,
                     std::vector<SampleInput> mask = {}, at::ScalarType dtype = at::kDouble) {
    std::vector<SampleInput> in = {{q, dtype}, {k, dtype}, {k, dtype}};
    in.insert(in.end(), mask.begin(), mask.end());
    return Sample<RingAttentionOp>{in, {how}};
  };
  const Shape plain = {2, 5, 2, 2};
  const SampleInput keys{{2, 1, 1, 5}, at::kBool, 0, 2}, rows{{1, 2, 5, 1}, at::kBool, 0, 2},
      pairs{{2, 1, 5, 5}, at::kBool, 0, 2}, lengths{{2}, at::kLong, 0, 6};
  return {of(plain, plain, ring_terms({})),
          of(plain, plain, ring_terms({.causal = true})),
          of(plain, plain, ring_terms({.causal = true}, true)),
          of({1, 4, 6, 2}, {1, 4, 2, 2}, ring_terms({.scale = 0.7, .causal = true}, true)),
          of({1, 6, 4, 1}, {1, 6, 1, 1}, ring_terms({.causal = true, .reach = 2})),
          of({1, 6, 1, 2}, {1, 6, 1, 2}, ring_terms({.reach = 3}, true)),
          of(plain, plain, ring_terms({}), {pairs}),
          of(plain, plain, ring_terms({.causal = true, .zeros = true}, true), {rows, keys}),
          of({2, 5, 2, 1}, {2, 5, 1, 1}, ring_terms({.causal = true}, true), {keys, lengths}),
          of(plain, plain, ring_terms({.causal = true}, true), {{{1, 2, 5, 5}}}),
          of(plain, plain, ring_terms({.causal = true}, true), {}, at::kFloat)};
}

Samples<RingAttentionGradOp> RingAttentionGradOp::samples() {
  const auto of = [](const Shape& q, const Shape& k, const RingTerms& how,
                     std::vector<SampleInput> mask = {}) {
    const SampleInput sums{{q[0], q[2], q[1]}, at::kDouble, 0.5, 1.5};
    std::vector<SampleInput> in = {{q}, {k}, {k}, {q}, sums, {q}};
    in.insert(in.end(), mask.begin(), mask.end());
    return Sample<RingAttentionGradOp>{in, {how}};
  };
  // No shared heads: only the sums over a group are equal in every layout (see ring_attention's).
  return {of({2, 4, 2, 2}, {2, 4, 2, 2}, ring_terms({})),
          of({1, 5, 1, 2}, {1, 5, 1, 2}, ring_terms({.causal = true}, true)),
          of({2, 4, 1, 2}, {2, 4, 1, 2}, ring_terms({.causal = true, .reach = 2}),
             {{{2}, at::kLong, 0, 5}})};
}

TESSERA_REGISTER_OP(RingAttentionGradOp);
TESSERA_REGISTER_OP(RingAttentionOp);

}  // namespace

bool detail::is_ring(const DTensor& query, const DTensor& key, const DTensor& value) {
  const auto matches_query = [&](const DTensor& x) {
    if (!x.defined() || !query.defined() || x.rank() != query.rank() || x.rank() < 4) return false;
    const int64_t steps = x.rank() - 3;
    return x.size(steps) == query.size(steps) && x.mesh() == query.mesh() &&
           !x.layout().axis(steps).empty() && x.layout().axis(steps) == query.layout().axis(steps);
  };
  return matches_query(key) && matches_query(value);
}

std::pair<DTensor, DTensor> detail::ring_attention(const AttentionTerms& terms, bool zigzag,
                                                   const std::vector<DTensor>& in) {
  const RingAttentionOp op{{terms, zigzag}};
  std::vector<DTensor> both = dispatch(op_info<RingAttentionOp>(), &op, attribute_hash(op), in);
  return {both[0], both[1]};
}

}  // namespace tessera
