#include <tessera/framework/drawing/axis_ticks.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tessera::detail {
namespace {

std::string print(const char* format, int digits, double value) {
  char text[512];
  const int size = std::snprintf(text, sizeof text, format, digits, value);
  return std::string(text, static_cast<size_t>(size));
}

/// Returns the smallest 1, 2 or 5 times a power of ten that is at least `least`.
double nice_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    // Rounding must not push an exact fit to the next step.
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/// Formats the labels with as many digits as the step needs, all fixed or all scientific.
std::vector<std::string> labels_of(const std::vector<double>& values, double step) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  const int step_power = static_cast<int>(std::floor(std::log10(step) + 1e-9));
  const int power = static_cast<int>(std::floor(std::log10(largest)));
  const bool scientific = power >= 6 || step_power < -5;
  std::vector<std::string> labels;
  for (const double value : values) {
    if (value == 0) {
      labels.push_back("0");
    } else if (scientific) {
      const int own = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
      labels.push_back(print("%.*e", std::max(own - step_power, 0), value));
    } else {
      labels.push_back(print("%.*f", std::max(-step_power, 0), value));
    }
  }
  return labels;
}

}  // namespace

Ticks value_ticks(double lo, double hi, int count) {
  // Keeps away from the limits of double, where sums would overflow or vanish.
  lo = std::clamp(lo, -1e300, 1e300);
  hi = std::clamp(hi, -1e300, 1e300);
  const double largest = std::max({std::abs(lo), std::abs(hi), 1e-290});
  const double least_span = lo == hi ? (lo == 0 ? 1.0 : largest * 0.2) : largest * 1e-6;
  if (hi - lo < least_span) {
    const double middle = lo / 2 + hi / 2;
    lo = middle - least_span / 2;
    hi = middle + least_span / 2;
  }
  const double step = nice_step((hi / count - lo / count));
  const auto first = std::llround(std::floor(lo / step + 1e-6));
  const auto last = std::llround(std::ceil(hi / step - 1e-6));
  Ticks ticks;
  for (auto i = first; i <= last; ++i) ticks.values.push_back(static_cast<double>(i) * step);
  ticks.labels = labels_of(ticks.values, step);
  return ticks;
}

Ticks integer_ticks(int64_t first, int64_t last, int count) {
  const double span = static_cast<double>(last - first);
  const auto step = std::max<int64_t>(1, std::llround(nice_step(std::max(span / count, 1e-3))));
  Ticks ticks;
  int64_t value = (first + step - 1) / step * step;
  if (first == last) value = first;
  for (; value <= last; value += step) {
    ticks.values.push_back(static_cast<double>(value));
    ticks.labels.push_back(std::to_string(value));
  }
  return ticks;
}

std::string short_number(double value) {
  if (std::isnan(value)) return "nan";
  return print("%.*g", 4, value);
}

}  // namespace tessera::detail
