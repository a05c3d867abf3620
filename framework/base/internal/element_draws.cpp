#include <tessera/framework/base/internal/element_draws.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

namespace tessera::detail {

namespace {

/// Returns a number in [0, 1) of 52 random bits.
double unit_double(uint32_t high_word, uint32_t low_word) {
  const uint64_t bits = uint64_t{high_word & 0xfffffu} << 32 | low_word;
  return std::bit_cast<double>(uint64_t{0x3ff} << 52 | bits) - 1.0;
}

/// Adds up waiting times for a success until they exceed the number of trials.
double binomial_by_waiting(ElementDraws& draws, double count, double probability) {
  const double failure = std::log1p(-probability);
  double trials = 0, successes = 0;
  while (true) {
    trials += std::ceil(std::log(draws.uniform()) / failure);
    if (trials > count) return successes;
    ++successes;
  }
}

/// Returns log(k!) less Stirling's approximation (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2.
double stirling_tail(double k) {
  static constexpr double first[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                     0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                     0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                     0.00833056343336287};
  if (k <= 9) return first[static_cast<size_t>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/// Draws by transformed rejection, for p at most 1/2 and count · p at least 10.
double binomial_by_rejection(ElementDraws& draws, double count, double p) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double centre = count * p + 0.5, squeeze = 0.92 - 4.2 / b, odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation, mode = std::floor((count + 1) * p);
  while (true) {
    const double u = draws.uniform() - 0.5, v = draws.uniform();
    const double side = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / side + b) * u + centre);
    if (side >= 0.07 && v <= squeeze) return k;
    if (!(k >= 0 && k <= count)) continue;
    const double height = std::log(v * alpha / (a / (side * side) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                         (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) +
                         stirling_tail(mode) + stirling_tail(count - mode) - stirling_tail(k) -
                         stirling_tail(count - k);
    if (height <= bound) return k;
  }
}

}  // namespace

std::array<double, 2> ElementDraws::next_pair() {
  const uint64_t lower = (element_ << 8) + blocks_, carry = lower < blocks_ ? 1 : 0;
  ++blocks_;
  const philox::Words w = stream_.block(lower, (element_ >> 56) + carry);
  return {unit_double(w[0], w[1]), unit_double(w[2], w[3])};
}

double ElementDraws::uniform() {
  if (uniforms_left_ == 0) {
    uniforms_ = next_pair();
    uniforms_left_ = 2;
  }
  return uniforms_[static_cast<size_t>(--uniforms_left_)];
}

double ElementDraws::normal() {
  if (normals_left_ == 0) {
    const auto [a, b] = next_pair();
    const double angle = 2 * std::numbers::pi * b;
    const double radius = std::sqrt(-2 * std::log(std::max(a, 1e-7)));
    normals_ = {std::sin(angle) * radius, std::cos(angle) * radius};
    normals_left_ = 2;
  }
  return normals_[static_cast<size_t>(--normals_left_)];
}

double gamma_draw(ElementDraws& draws, double alpha) {
  if (!(alpha > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (alpha == 1) return -std::log1p(-draws.uniform());
  // A shape below 1 is that of alpha + 1, times a power of a uniform number.
  const bool small = alpha < 1;
  const double d = alpha + (small ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / std::sqrt(d);
  while (true) {
    const double x = draws.normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root, u = draws.uniform();
    // The first bound is cheaper, and decides nearly always.
    if (u < 1 - 0.0331 * (x * x) * (x * x) ||
        std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      return small ? d * v * std::pow(draws.uniform(), 1 / alpha) : d * v;
    }
  }
}

double binomial_draw(ElementDraws& draws, double count, double probability) {
  if (!std::isfinite(count) || std::isnan(probability)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const bool mirrored = probability > 0.5;
  const double p = mirrored ? 1 - probability : probability;
  double successes = 0;
  if (p > 0 && count > 0) {
    successes = count * p >= 10 ? binomial_by_rejection(draws, count, p)
                                : binomial_by_waiting(draws, count, p);
  }
  return mirrored ? std::max(count, 0.0) - successes : successes;
}

}  // namespace tessera::detail
