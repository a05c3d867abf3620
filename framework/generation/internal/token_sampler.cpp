#include <tessera/framework/generation/internal/token_sampler.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/random.hpp>

namespace tessera {

using namespace detail;

namespace {

void check_option(bool fits, const char* rule, const std::string& received, const char* fix) {
  if (!fits) throw ConfigError("generate", rule, received, fix);
}

}  // namespace

void detail::check_options(const GenerateOptions& o) {
  check_option(o.max_new_tokens >= 1, "max_new_tokens must be at least 1", str(o.max_new_tokens),
               "ask for a token");
  const double temperature = o.temperature.value_or(1), top_p = o.top_p.value_or(1);
  check_option(temperature > 0 && std::isfinite(temperature), "temperature is positive",
               str(temperature),
               "leave out temperature, top_k and top_p for the most probable token");
  check_option(o.top_k.value_or(1) >= 1, "top_k must be at least 1", str(o.top_k.value_or(1)),
               "leave it out for all tokens");
  check_option(top_p > 0 && top_p <= 1, "top_p lies in (0, 1]", str(top_p),
               "leave it out for all tokens");
  check_option(o.num_beams >= 1, "num_beams must be at least 1", str(o.num_beams),
               "use 1 for no beam search");
  check_option(std::isfinite(o.length_penalty), "length_penalty is finite", str(o.length_penalty),
               "use 1");
  const bool draws = o.temperature || o.top_k || o.top_p;
  check_option(o.num_beams == 1 || !draws, "a beam search draws nothing",
               str(o.num_beams, " beams with temperature, top_k or top_p"), "leave these out");
  check_option(o.num_beams == 1 || !o.on_token, "on_token is for texts that grow one by one",
               str(o.num_beams, " beams"), "leave it out with beams");
  check_option(o.vocabulary_size.value_or(1) >= 1, "vocabulary_size must be at least 1",
               str(o.vocabulary_size.value_or(1)), "leave it out for all tokens");
  check_option(o.max_context.value_or(1) >= 1, "max_context must be at least 1",
               str(o.max_context.value_or(1)), "leave it out for all tokens");
}

double detail::log_sum_exp(std::span<const double> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - most);
  if (!std::isfinite(sum)) {
    throw StateError("generate", "logits are numbers", "NaN or infinity",
                     "check the model's weights");
  }
  return most + std::log(sum);
}

std::vector<int64_t> detail::best_tokens(std::span<const double> logits, int64_t count) {
  std::vector<int64_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  count = std::min(count, std::ssize(tokens));
  const auto better = [&](int64_t a, int64_t b) {
    const double first = logits[size_t(a)], second = logits[size_t(b)];
    return first > second || (first == second && a < b);
  };
  // A full sort of all tokens is faster than a partial one.
  if (count == std::ssize(tokens)) {
    std::sort(tokens.begin(), tokens.end(), better);
  } else {
    std::partial_sort(tokens.begin(), tokens.begin() + count, tokens.end(), better);
  }
  tokens.resize(size_t(count));
  return tokens;
}

std::vector<TokenChance> detail::token_chances(std::span<const double> logits,
                                               const GenerateOptions& options) {
  if (!options.temperature && !options.top_k && !options.top_p) {
    // The first of equal ones.
    const auto best = std::max_element(logits.begin(), logits.end());
    return {{best - logits.begin(), 1}};
  }
  // Subtracts the maximum, so that it stays 0 for any temperature.
  const double most = *std::max_element(logits.begin(), logits.end());
  const auto weight = [&](double logit) {
    return std::exp((logit - most) / options.temperature.value_or(1));
  };
  const auto sum_of = [&](const std::vector<int64_t>& tokens) {
    double sum = 0;
    for (const int64_t token : tokens) sum += weight(logits[size_t(token)]);
    return sum;
  };
  std::vector<int64_t> tokens;
  double sum = 0;
  if (options.top_p && !options.top_k) {
    // Few tokens of a large vocabulary are needed, and the others need not be sorted.
    for (const double logit : logits) sum += weight(logit);
    int64_t count = 256;
    do {
      tokens = best_tokens(logits, count);
      count *= 8;
    } while (std::ssize(tokens) < std::ssize(logits) && sum_of(tokens) < *options.top_p * sum);
  } else {
    tokens = best_tokens(logits, options.top_k.value_or(std::ssize(logits)));
    sum = sum_of(tokens);
  }
  std::vector<TokenChance> chances;
  for (const int64_t token : tokens)
    chances.push_back({token, weight(logits[size_t(token)]) / sum});
  if (!options.top_p) return chances;
  double kept = 0;
  size_t count = 0;
  while (count < chances.size() && kept < *options.top_p) kept += chances[count++].probability;
  chances.resize(count);
  for (TokenChance& each : chances) each.probability /= kept;
  return chances;
}

int64_t detail::drawn_token(const std::vector<TokenChance>& chances, double draw) {
  double sum = 0;
  for (const TokenChance& each : chances) {
    sum += each.probability;
    if (draw < sum) return each.token;
  }
  // The sum is 1 but for rounding.
  return chances.back().token;
}

double detail::token_draw(int64_t seed, int64_t text, int64_t position) {
  float draw = 0;
  stateless_uniform(fold_in({seed, text}, static_cast<uint64_t>(position)), {}, {}, 0, 1, &draw);
  return draw;
}

}  // namespace tessera
