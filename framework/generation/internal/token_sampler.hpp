#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tessera/framework/generation/generate.hpp>

namespace tessera::detail {

/// A token and its probability.
struct TokenChance {
  int64_t token = 0;
  double probability = 0;
};

/// Throws ConfigError for invalid options.
void check_options(const GenerateOptions& options);

/// Returns log(Σ exp(logits)). Throws StateError for a NaN or infinity, except for -infinity.
double log_sum_exp(std::span<const double> logits);

/// Returns the `count` most probable tokens, best first; of equal ones, lower ids first.
std::vector<int64_t> best_tokens(std::span<const double> logits, int64_t count);

/// Returns the tokens that are drawn from, the most probable one first, and their probabilities,
/// which sum to 1: of logits / temperature, the top_k, then of these the top_p. Without any of the
/// three options, the most probable token alone.
std::vector<TokenChance> token_chances(std::span<const double> logits,
                                       const GenerateOptions& options);

/// Returns the token at `draw`, a number in [0, 1), of these chances, in their order.
int64_t drawn_token(const std::vector<TokenChance>& chances, double draw);

/// Returns the number in [0, 1) with which token `position` of a text is drawn.
double token_draw(int64_t seed, int64_t text, int64_t position);

}  // namespace tessera::detail
