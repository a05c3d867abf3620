#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace tessera::detail {

/// Timeouts of claims on a directory.
struct ClaimTimes {
  /// Time to retry while another process holds the claim: a killed process takes a moment to
  /// release it, or to be found dead.
  std::chrono::milliseconds acquire_timeout = std::chrono::seconds(2);
  /// Interval at which a claim is renewed, as processes on other machines observe.
  std::chrono::milliseconds heartbeat_interval = std::chrono::seconds(5);
  /// A claim from another machine is void if it was not renewed while watched for this long.
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(30);
};

/// Exclusive right to save into a directory, across processes of this machine and of others that
/// share it.
class DirectoryClaim {
 public:
  virtual ~DirectoryClaim() = default;
  /// Returns whether the claim is still valid: the directory exists and no process took it over, as
  /// one on another machine may do after this process was suspended for long.
  virtual bool is_valid() const = 0;
  /// Ends the claim for all copies and removes its file from the directory.
  virtual void end() = 0;
};

/// Claims a directory, which is created if missing, for as long as the result or a copy and the
/// process live. Shared within a process, and renewed if it is no longer valid. Removes what
/// processes of void claims on other machines left unfinished there. Returns nullptr if the
/// directory cannot be created; if nothing can be written in it the claim is not valid. Throws
/// FileError if another process holds the claim.
std::shared_ptr<DirectoryClaim> claim_directory(const std::string& directory,
                                                const ClaimTimes& times = {});

}  // namespace tessera::detail
