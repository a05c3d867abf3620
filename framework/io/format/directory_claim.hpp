#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace tessera::detail {

/// How long those wait who claim a directory.
struct ClaimTimes {
  /// A process that was killed takes a moment to let go, or to be found dead.
  std::chrono::milliseconds patience = std::chrono::seconds(2);
  /// A claim is renewed so often, which processes on other machines see.
  std::chrono::milliseconds beat = std::chrono::seconds(5);
  /// A claim of another machine is void that nobody renews while it is watched for so long.
  std::chrono::milliseconds silence = std::chrono::seconds(30);
};

/// Keeps other processes from saving into a directory, on this machine and on others that share it.
class DirectoryClaim {
 public:
  virtual ~DirectoryClaim() = default;
  /// Whether the directory is still there and nobody took it over, as a process of another machine
  /// may where this one was stopped for long.
  virtual bool stands() const = 0;
  /// Ends it for all who share it, with nothing of it left in the directory.
  virtual void end() = 0;
};

/// Claims a directory, which is made if there is none, while the result or a copy lives and the
/// process does. Within a process it is shared, and made again where it does not stand any more.
/// Removes what a process of another machine left unfinished there whose claim is void. nullptr
/// where the directory cannot be made; where nothing can be written in it the claim does not stand.
/// Throws FileError if another process holds it.
std::shared_ptr<DirectoryClaim> claim_directory(const std::string& directory,
                                                const ClaimTimes& times = {});

}  // namespace tessera::detail
