#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Which tokens a second expert works on.
enum class SecondExpert : uint8_t { all, sampling, random };

/// How tokens are given to experts.
struct RoutingForm {
  int64_t top_k = 2;     ///< experts of a token: 1 (Switch) or 2 (GShard)
  int64_t capacity = 4;  ///< slots that an expert has in a group
  bool legacy = true;    ///< MixtureOfExpertsOptions::legacy_mtf_behavior
  SecondExpert second = SecondExpert::all;
  double threshold = 0;                     ///< gate from which `random` always takes the second
  std::function<DTensor()> seed = nullptr;  ///< of what `sampling` and `random` draw
};

/// The first or the second expert of each token. G groups, S tokens, E experts.
struct ExpertChoice {
  DTensor expert;    ///< its number, int64 (G, S)
  DTensor taken;     ///< 1 where the token has a slot of that expert, else 0, (G, S, E)
  DTensor position;  ///< which of its slots, int64 (G, S); 0 where it has none
  DTensor gate;      ///< weight of what the expert gives, 0 where it has no slot, (G, S)
};

/// Where the tokens of a batch go, and what that says of the router.
struct Routing {
  std::vector<ExpertChoice> choices;
  DTensor aux_loss;  ///< mean over groups of E · Σ_e f_e P_e, 0-d
  DTensor z_loss;    ///< mean over tokens of logsumexp(logits)², 0-d
  DTensor chosen;    ///< tokens that chose each expert, whether it had a slot or not, float64 (E,)
  DTensor kept;      ///< those that have one, float64 (1,)
};

/// Slots of an expert for groups of so many tokens: tokens · factor / experts, for a top_k of 2 at
/// least 4 and a multiple of 4, as in Lingvo; never more than tokens.
int64_t expert_capacity(int64_t tokens, int64_t experts, int64_t top_k, double factor);

/// Gates softmax(logits) of (G, S, E), in the dtype of the logits: each token's likeliest expert,
/// and maybe the next one. Slots are given in the order of the tokens, to first choices first; of
/// equal gates the lowest expert is taken. Tokens where `mask`, bool (G, S), is false choose
/// nothing; an undefined mask leaves out none. Lingvo's Top2GatingOnLogits, and Switch's router.
/// Each group stands for itself: no communication where only G is cut, and sums stay pending.
Routing route_tokens(const DTensor& logits, const DTensor& mask, const RoutingForm& form);

/// Whether a token lies in a slot, (G, S, E, C) of 0 and 1, and with what weight.
DTensor dispatch_tensor(const Routing& routing, int64_t capacity);
DTensor combine_tensor(const Routing& routing, int64_t capacity);

/// The same by numbers: which token lies in each slot, int64 (G, E, C), and whether one does, 0 or
/// 1 of that shape.
std::pair<DTensor, DTensor> slot_tokens(const Routing& routing, int64_t capacity);
/// The number of each token's slot, expert · C + position, int64 (G, S).
DTensor token_slots(const ExpertChoice& choice, int64_t capacity);

}  // namespace tessera::detail
