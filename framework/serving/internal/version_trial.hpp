#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace tessera::detail {

/// Where tessera-check-export lies: beside this program, else in the bin folder beside the
/// library's; empty if nowhere.
std::string find_trial_program();

/// What a version is tried with.
struct VersionTrial {
  std::string program;  ///< tessera-check-export
  std::string folder;   ///< of the versions
  int64_t version = 0;
  int64_t max_activation_bytes = 0;  ///< 0: any number
  std::chrono::milliseconds timeout{0};
};

/// Loads the version and computes its sample in a process of its own, which is the one that fails
/// if the version takes more memory or time than there is. Returns once it ended, or `stopped` says
/// so. Throws FileError for a version that is to be refused.
void try_version_apart(const VersionTrial& trial, const std::function<bool()>& stopped);

}  // namespace tessera::detail
