#include <tessera/layers/experts/internal/expert_routing.hpp>

#include <algorithm>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/ops/softmax.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {
namespace {

DTensor number_like(const DTensor& x, double value) { return scalar(value, x.mesh(), x.dtype()); }

/// A choice before slots are assigned.
struct Candidate {
  DTensor expert;  ///< int64 (G, S)
  DTensor mask;    ///< 1 at the chosen expert, 0 elsewhere and for masked tokens, (G, S, E)
  DTensor gate;    ///< (G, S)
};

class Router {
 public:
  Router(const DTensor& logits, const DTensor& mask, const RoutingOptions& options)
      : logits_(logits), options_(options), gates_(ops::softmax(logits)), experts_(logits.size(2)) {
    if (!mask.defined()) return;
    unmasked_ = ops::cast(mask, logits.dtype());
    while (unmasked_.rank() < 3) unmasked_ = ops::expand_dims(unmasked_, -1);
  }

  Routing route() const;

 private:
  DTensor mask_out(const DTensor& x) const { return unmasked_.defined() ? x * unmasked_ : x; }
  Candidate candidate(const DTensor& expert) const {
    const DTensor mask = mask_out(ops::one_hot(expert, experts_, gates_.dtype()));
    return {expert, mask, ops::sum(gates_ * mask, {2})};
  }
  Candidate next_candidate(const std::vector<Candidate>& before) const;
  void draw_second(Candidate& second) const;
  ExpertChoice slots(const Candidate& candidate, const DTensor& before) const;
  DTensor per_token(const DTensor& x) const;
  DTensor group_mean(const DTensor& x) const;

  const DTensor& logits_;
  const RoutingOptions& options_;
  DTensor gates_;
  int64_t experts_;
  DTensor unmasked_;  ///< 1 for tokens that are not masked, (G, S, 1); undefined: all
};

/// Chooses a further expert: the next most probable, or a second one drawn in proportion to its
/// gate.
Candidate Router::next_candidate(const std::vector<Candidate>& before) const {
  DTensor out;
  for (const Candidate& candidate : before) {
    const DTensor chosen = ops::one_hot(candidate.expert, experts_, gates_.dtype());
    out = out.defined() ? out + chosen : chosen;
  }
  if (options_.second == SecondExpert::sampling) {
    return candidate(ops::categorical(ops::stop_gradient(logits_) - out * 1e9, options_.seed()));
  }
  return candidate(ops::argmax(gates_ - out * 2, 2));
}

/// Drops a second choice with probability 1 - gate / threshold.
void Router::draw_second(Candidate& second) const {
  const DTensor draws =
      ops::random_uniform(second.gate.shape(), options_.seed(), 0, 1, second.gate.dtype());
  const DTensor share = ops::stop_gradient(second.gate) / std::max(options_.threshold, 1e-9);
  const DTensor keep = ops::cast(ops::less(draws, share), second.gate.dtype());
  second.gate = second.gate * keep;
  second.mask = second.mask * ops::expand_dims(keep, -1);
}

/// Assigns slots. `before`: number of slots taken by earlier choices, (G, 1, E); undefined for
/// none.
ExpertChoice Router::slots(const Candidate& candidate, const DTensor& before) const {
  DTensor position = ops::cumsum(candidate.mask, 1, /*exclusive=*/true);
  if (before.defined()) position = position + before;
  const DTensor free =
      ops::less(position, number_like(position, static_cast<double>(options_.capacity)));
  const DTensor taken = candidate.mask * ops::cast(free, position.dtype());
  const DTensor slot = ops::cast(ops::sum(position * taken, {2}), at::kLong);
  return {candidate.expert, taken, slot, candidate.gate * ops::sum(taken, {2})};
}

/// Returns the mean over each group's tokens, (G, S, n) -> (G, n).
DTensor Router::per_token(const DTensor& x) const {
  const DTensor sums = ops::sum(mask_out(x), {1});
  if (!unmasked_.defined() || options_.legacy) {
    return sums / static_cast<double>(std::max<int64_t>(x.size(1), 1));
  }
  const DTensor tokens = ops::sum(unmasked_, {1});
  return sums / ops::maximum(tokens, number_like(tokens, 1));
}

/// Returns the mean over groups of the sum over n of (G, n).
DTensor Router::group_mean(const DTensor& x) const {
  return ops::sum(x) / static_cast<double>(std::max<int64_t>(x.size(0), 1));
}

Routing Router::route() const {
  std::vector<Candidate> candidates = {candidate(ops::argmax(gates_, 2))};
  while (std::ssize(candidates) < options_.top_k) {
    candidates.push_back(next_candidate(candidates));
  }
  if (options_.top_k > 1 && options_.legacy) {
    DTensor total = candidates[0].gate + candidates[1].gate;
    for (size_t i = 2; i < candidates.size(); ++i) total = total + candidates[i].gate;
    total = total + 1e-9;
    for (Candidate& candidate : candidates) candidate.gate = candidate.gate / total;
  }

  Routing routing;
  // The loss uses f before choices are dropped, so that it sees the router's own choices.
  const DTensor balance = per_token(candidates[0].mask) * per_token(gates_);
  routing.aux_loss = group_mean(balance) * static_cast<double>(experts_);
  const DTensor sums = ops::logsumexp(logits_, {2}, /*keepdims=*/true);
  routing.z_loss = group_mean(per_token(ops::square(sums)));

  if (options_.top_k == 2 && options_.second == SecondExpert::random) draw_second(candidates[1]);
  DTensor before, requested;
  for (const Candidate& candidate : candidates) {
    routing.choices.push_back(slots(candidate, before));
    const DTensor taken = ops::sum(routing.choices.back().taken, {1}, /*keepdims=*/true);
    before = before.defined() ? before + taken : taken;
    const DTensor requests = ops::sum(candidate.mask, {1});
    requested = requested.defined() ? requested + requests : requests;
  }
  routing.requested = ops::sum(ops::cast(requested, at::kDouble), {0});
  routing.assigned = ops::reshape(ops::sum(ops::cast(before, at::kDouble)), {1});
  if (options_.top_k > 1 && !options_.legacy) {
    DTensor total = routing.choices[0].gate + routing.choices[1].gate;
    for (size_t i = 2; i < routing.choices.size(); ++i) total = total + routing.choices[i].gate;
    const DTensor none = ops::cast(ops::less_equal(total, number_like(total, 0)), total.dtype());
    for (ExpertChoice& choice : routing.choices) choice.gate = choice.gate / (total + none);
  }
  return routing;
}

/// Returns the sum over choices of one-hot tensors of expert and slot, (G, S, E, C), scaled by
/// `weight`.
template <class Weight>
DTensor summed_slots(const Routing& routing, int64_t capacity, const Weight& weight) {
  DTensor sum;
  for (const ExpertChoice& choice : routing.choices) {
    const DTensor slot = ops::one_hot(choice.position, capacity, choice.taken.dtype());
    const DTensor one = ops::expand_dims(weight(choice), -1) * ops::expand_dims(slot, 2);
    sum = sum.defined() ? sum + one : one;
  }
  return sum;
}

}  // namespace

int64_t expert_capacity(int64_t tokens, int64_t experts, int64_t top_k, double factor) {
  const double share = static_cast<double>(tokens) * factor / static_cast<double>(experts);
  auto capacity = static_cast<int64_t>(std::min(share, static_cast<double>(tokens)));
  if (top_k > 1) capacity = (std::max<int64_t>(capacity, 4) + 3) / 4 * 4;
  return std::clamp<int64_t>(capacity, 1, std::max<int64_t>(tokens, 1));
}

Routing route_tokens(const DTensor& logits, const DTensor& mask, const RoutingOptions& options) {
  return Router(logits, mask, options).route();
}

DTensor dispatch_tensor(const Routing& routing, int64_t capacity) {
  return summed_slots(routing, capacity, [](const ExpertChoice& choice) { return choice.taken; });
}

DTensor combine_tensor(const Routing& routing, int64_t capacity) {
  return summed_slots(routing, capacity, [](const ExpertChoice& choice) {
    return choice.taken * ops::expand_dims(choice.gate, -1);
  });
}

std::pair<DTensor, DTensor> slot_tokens(const Routing& routing, int64_t capacity) {
  // Slots are ordered by choice, then by token, which is the order of a stable sort.
  DTensor rank;
  for (const ExpertChoice& choice : routing.choices) {
    rank = rank.defined() ? rank * 2 + choice.taken : choice.taken;
  }
  const auto [ranks, tokens] = ops::top_k(ops::transpose(rank, {0, 2, 1}), capacity);
  return {tokens, ops::clip(ranks, 0, 1)};
}

DTensor token_slots(const ExpertChoice& choice, int64_t capacity) {
  const DTensor slots = number_like(choice.expert, static_cast<double>(capacity));
  return choice.expert * slots + choice.position;
}

}  // namespace tessera::detail
