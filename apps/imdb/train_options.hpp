#pragma once

#include <string>
#include <vector>

#include "apps/common/app_options.hpp"
#include "apps/common/checkpoints.hpp"
#include "apps/imdb/schemes.hpp"

namespace tessera::imdb {

/// The options of `imdb train` beyond the common ones.
struct TrainFlags {
  std::string scheme;  ///< empty: all, or the user's own mesh or layouts
  int64_t max_tokens = 1200;
  bool validation = false;
  app::CheckpointFlags checkpoints;
  std::string export_folder;
};

/// Parses the arguments; returns false if they only ask for help. Throws ConfigError.
bool parse_train_options(app::AppOptions& options, TrainFlags& flags, int argc,
                         const char* const* argv);

/// Returns the schemes to train, in order. Throws ConfigError if the options contradict each other.
std::vector<Scheme> phases_of(const TrainFlags& flags, const app::CommonOptions& common);

}  // namespace tessera::imdb
