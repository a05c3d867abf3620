#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace tessera::detail {

/// Returns the path of tessera-check-export, searched beside this program, then in the bin folder
/// next to the library's; empty if not found.
std::string find_trial_program();

/// A version and the limits that it is tried with.
struct VersionTrial {
  std::string program;  ///< tessera-check-export
  std::string folder;   ///< the export, which holds the versions
  int64_t version = 0;
  int64_t max_activation_bytes = 0;  ///< 0: unlimited
  std::chrono::milliseconds timeout{0};
};

/// Loads the version and computes its sample in a separate process, so that only that process fails
/// if the version takes too much memory or time. Returns when the process has ended or `stopped`
/// returns true. Throws FileError if the version must be refused.
void try_version_in_process(const VersionTrial& trial, const std::function<bool()>& stopped);

}  // namespace tessera::detail
