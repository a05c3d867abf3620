#pragma once

#include <functional>
#include <vector>

namespace tessera::bench {

/// Returns the median; of an even count, the mean of the middle two. `values` must not be empty.
double median(std::vector<double> values);

/// Returns the duration of a call in seconds, on the steady clock.
double seconds_of(const std::function<void()>& call);

/// Returns the seconds per call of each function, after a warm-up: the minimum over rounds in which
/// the functions take turns, so that other load affects all of them.
std::vector<double> seconds_per_call(const std::vector<std::function<void()>>& calls);

}  // namespace tessera::bench
