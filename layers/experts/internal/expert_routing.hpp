#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// How the second expert of a token is chosen.
enum class SecondExpert : uint8_t { all, sampling, random };

/// Options of route_tokens().
struct RoutingOptions {
  int64_t top_k = 2;     ///< experts per token: 1 (Switch), 2 (GShard) or more
  int64_t capacity = 4;  ///< slots per expert and group
  bool legacy = true;    ///< MixtureOfExpertsOptions::legacy_mtf_behavior
  SecondExpert second = SecondExpert::all;
  double threshold = 0;                     ///< gate from which `random` always keeps the second
  std::function<DTensor()> seed = nullptr;  ///< seed of the draws of `sampling` and `random`
};

/// The first, the second or a later choice of each token. G groups, S tokens, E experts.
struct ExpertChoice {
  DTensor expert;    ///< expert index, int64 (G, S)
  DTensor taken;     ///< 1 where the token got a slot of that expert, otherwise 0, (G, S, E)
  DTensor position;  ///< slot index within the expert, int64 (G, S); 0 without a slot
  DTensor gate;      ///< weight of the expert's output, 0 without a slot, (G, S)
};

/// The experts and slots of a batch's tokens, and statistics of the router.
struct Routing {
  std::vector<ExpertChoice> choices;
  DTensor aux_loss;   ///< mean over groups of E · Σ_e f_e P_e, 0-d
  DTensor z_loss;     ///< mean over tokens of logsumexp(logits)², 0-d
  DTensor requested;  ///< choices per expert, with or without a slot, float64 (E,)
  DTensor assigned;   ///< choices that got a slot, float64 (1,)
};

/// Returns the slots per expert of a group of `tokens`: tokens · factor / experts, with a top_k of
/// 2 or more at least 4 and rounded up to a multiple of 4, as in Lingvo; at least 1 and at most
/// `tokens`.
int64_t expert_capacity(int64_t tokens, int64_t experts, int64_t top_k, double factor);

/// Routes tokens by gates softmax(logits), (G, S, E) in the dtype of the logits (Lingvo's
/// Top2GatingOnLogits, and Switch's router): each token chooses its most probable expert, and with
/// a top_k of 2 or more further ones. Slots are assigned to first choices before later ones, then
/// in the order of the tokens; equal gates choose the lowest expert. Tokens where `mask`, bool (G,
/// S), is false choose none; an undefined mask excludes none. Groups are independent: no
/// communication if only G is sharded; sums over groups stay partial.
Routing route_tokens(const DTensor& logits, const DTensor& mask, const RoutingOptions& options);

/// Returns a tensor (G, S, E, C): dispatch_tensor() is 1 where a token is in a slot and 0
/// elsewhere; combine_tensor() holds its weight there.
DTensor dispatch_tensor(const Routing& routing, int64_t capacity);
DTensor combine_tensor(const Routing& routing, int64_t capacity);

/// Returns the index of the token in each slot, int64 (G, E, C), and 1 for filled slots, 0 for
/// empty ones, of the same shape.
std::pair<DTensor, DTensor> slot_tokens(const Routing& routing, int64_t capacity);
/// Returns the index of each token's slot, expert · C + position, int64 (G, S).
DTensor token_slots(const ExpertChoice& choice, int64_t capacity);

}  // namespace tessera::detail
