#pragma once

#include <functional>
#include <vector>

namespace tessera::bench {

/// The value in the middle; of an even count, the mean of the two. `values` is not empty.
double median(std::vector<double> values);

/// Seconds that a call takes on the steady clock.
double seconds_of(const std::function<void()>& call);

/// Seconds per call of each function, warm: the least of rounds in which the functions take turns,
/// so that what else the machine does hits all of them alike.
std::vector<double> seconds_per_call(const std::vector<std::function<void()>>& calls);

}  // namespace tessera::bench
