#pragma once

#include <string>
#include <vector>

#include "apps/common/app_options.hpp"
#include "apps/common/checkpoints.hpp"
#include "apps/imdb/schemes.hpp"

namespace tessera::imdb {

/// What `imdb train` can be told beyond the common options.
struct TrainFlags {
  std::string scheme;  ///< empty: all, or the user's own
  int64_t max_tokens = 1200;
  bool validation = false;
  app::CheckpointFlags checkpoints;
  std::string export_folder;
};

/// Reads the arguments; returns false if they ask for help only. Throws ConfigError.
bool parse_train_options(app::AppOptions& options, TrainFlags& flags, int argc,
                         const char* const* argv);

/// What is to be trained, one after the other. Throws ConfigError if the options contradict each
/// other.
std::vector<Scheme> phases_of(const TrainFlags& flags, const app::CommonOptions& common);

}  // namespace tessera::imdb
