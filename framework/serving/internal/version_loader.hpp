#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <tessera/framework/io/export.hpp>

namespace tessera::detail {

/// The options of VersionLoader.
struct VersionLoaderOptions {
  LayoutMap layouts = {};
  double most_bytes = 0;  ///< that the values of a call may hold
  bool try_apart = true;  ///< whether another process tries versions after the first one
  std::chrono::milliseconds trial_timeout{0};
  std::function<void(const std::string&)> warn;  ///< takes a line
  std::function<bool()> stopped;                 ///< whether a trial is to be left alone
};

/// Loads the newest version of an export that can be loaded, each version once. One that is damaged
/// is refused with one warning, and looked at again when its files change. For one thread at a
/// time.
class VersionLoader {
 public:
  VersionLoader(std::string folder, VersionLoaderOptions options);
  /// The first version to serve. Throws FileError if there is none.
  ExportedModel first();
  /// A newer version than the last; nothing if there is none that can be loaded.
  std::optional<ExportedModel> next();

 private:
  std::optional<ExportedModel> try_version(int64_t version);
  void try_apart(int64_t version);
  ExportedModel load(std::optional<int64_t> version) const;

  std::string folder_;
  VersionLoaderOptions options_;
  int64_t loaded_ = -1;                       ///< the version that was loaded last
  std::map<int64_t, std::string> refused_;    ///< by version, how its files looked
  std::optional<std::string> trial_program_;  ///< looked for once
};

}  // namespace tessera::detail
