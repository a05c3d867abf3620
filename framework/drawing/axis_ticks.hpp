#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::detail {

/// Round numbers along an axis.
struct Ticks {
  std::vector<double> values;
  std::vector<std::string> labels;
};

/// Multiples of 1, 2 or 5 times a power of ten, at most about `count`, of which the first and the
/// last enclose [lo, hi]; the range is widened where it is too small to tell numbers apart. Both
/// ends must be finite.
Ticks value_ticks(double lo, double hi, int count);

/// Round whole numbers within [first, last], at most about `count`; `first` itself is among them
/// if it is the only one.
Ticks whole_ticks(int64_t first, int64_t last, int count);

/// A number in few digits: "0.0312", "97.5", "1.2e-07", "nan".
std::string short_number(double value);

}  // namespace tessera::detail
