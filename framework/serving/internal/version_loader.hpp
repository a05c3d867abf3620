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
  double max_bytes = 0;        ///< maximum activation memory of a call
  bool isolate_trials = true;  ///< whether another process tries versions after the first one
  std::chrono::milliseconds trial_timeout{0};
  std::function<void(const std::string&)> warn;  ///< receives one line per warning
  std::function<bool()> stopped;                 ///< returns whether to abandon a trial
};

/// Loads the newest version of an export that can be loaded, each version once. A damaged version
/// is refused with one warning, and tried again when its files change. Not thread-safe.
class VersionLoader {
 public:
  VersionLoader(std::string folder, VersionLoaderOptions options);
  /// Returns the first version to serve. Throws FileError if there is none.
  ExportedModel first();
  /// Returns a version newer than the last one, or nothing if none can be loaded.
  std::optional<ExportedModel> next();

 private:
  std::optional<ExportedModel> try_version(int64_t version);
  void isolate_trials(int64_t version);
  ExportedModel load(std::optional<int64_t> version) const;

  std::string folder_;
  VersionLoaderOptions options_;
  int64_t loaded_ = -1;                       ///< the version that was loaded last
  std::map<int64_t, std::string> refused_;    ///< by version: the signature of its files
  std::optional<std::string> trial_program_;  ///< its path, searched once; "" if there is none
};

}  // namespace tessera::detail
