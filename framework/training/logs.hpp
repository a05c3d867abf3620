#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// Named values of a step or an epoch, in the order in which they are shown: training values
/// alphabetically, then `val_*`, as Keras gives them.
using Logs = std::vector<std::pair<std::string, double>>;

}  // namespace tessera
