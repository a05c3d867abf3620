#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::detail {

/// Round tick values of an axis and their labels.
struct Ticks {
  std::vector<double> values;
  std::vector<std::string> labels;
};

/// Returns at most about `count` ticks whose first and last enclose [lo, hi], at multiples of 1, 2
/// or 5 times a power of ten. A range too small to tell numbers apart is widened. lo and hi must be
/// finite.
Ticks value_ticks(double lo, double hi, int count);

/// Returns at most about `count` round integers within [first, last]; just `first` if first ==
/// last.
Ticks integer_ticks(int64_t first, int64_t last, int count);

/// Formats a number in at most four digits: "0.0312", "97.5", "1.2e-07", "nan".
std::string short_number(double value);

}  // namespace tessera::detail
