#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tessera::bench {

/// Brings together the texts of all ranks, by rank, from that of this one: up to 4 KB each.
using Gather = std::function<std::vector<std::string>(const std::string& text)>;

/// Runs `function` in `ranks` processes made by fork() and returns what that of rank 0 does, of up
/// to 4 KB. Called before the program uses a thread. Throws StateError if a process fails.
std::string run_ranks(int ranks,
                      const std::function<std::string(int rank, const Gather& gather)>& function);

}  // namespace tessera::bench
