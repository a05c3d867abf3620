#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tessera::bench {

/// All-gathers a text of up to 4 KB from each rank; returns them by rank.
using Gather = std::function<std::vector<std::string>(const std::string& text)>;

/// Runs `function` in `ranks` processes made by fork() and returns rank 0's result, of up to 4 KB.
/// Must be called before the program starts threads. Throws StateError if a process fails.
std::string run_ranks(int ranks,
                      const std::function<std::string(int rank, const Gather& gather)>& function);

}  // namespace tessera::bench
