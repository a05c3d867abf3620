#pragma once

#include <optional>
#include <string>

#include <tessera/framework/base/profile.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::app {

/// The profile for `--profile FILE.json`: records from construction to stop() or finish().
class Profiling {
 public:
  /// Records nothing if the option is absent. Throws ConfigError, as find_cluster() does.
  explicit Profiling(const CommonOptions& options);

  void stop();

  /// Writes the trace; each of several processes writes its own, "trace-rank-1.json". Returns the
  /// table and a line with the trace's path, or "" without the option. Throws FileError.
  std::string finish();

 private:
  std::string path_;
  std::optional<Profile> profile_;
};

}  // namespace tessera::app
