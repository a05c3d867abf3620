#pragma once

#include <optional>
#include <string>

#include <tessera/framework/base/profile.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::app {

/// The profile that `--profile FILE.json` asks for: of what runs from here to stop() or finish().
class Profiling {
 public:
  /// Takes none if the option is absent. Throws ConfigError as find_cluster() does.
  explicit Profiling(const CommonOptions& options);

  void stop();

  /// Writes the trace, of several processes each its own: "trace-rank-1.json". Returns the table,
  /// and a line on where the trace is; nothing without the option. Throws FileError.
  std::string finish();

 private:
  std::string path_;
  std::optional<Profile> profile_;
};

}  // namespace tessera::app
