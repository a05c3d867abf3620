#pragma once

#include <optional>

namespace tessera {

/// The options of Model::save().
struct SaveOptions {
  bool overwrite = true;  ///< whether an existing file may be replaced
  /// Whether the optimizer's variables are saved too, so that training can resume exactly.
  bool include_optimizer = true;
  /// Whether the model's files go into one archive instead of a folder.
  bool zipped = true;
};

/// The options of Model::save_weights().
struct SaveWeightsOptions {
  bool overwrite = true;  ///< whether an existing file may be replaced
  /// Maximum GiB (2^30 bytes) of weights per file (default: one file of any size); the path must
  /// then end in ".weights.json".
  std::optional<double> max_shard_size = std::nullopt;
};

/// The options of Model::load_weights().
struct LoadWeightsOptions {
  /// Whether to skip layers whose weights do not match the file's, with a warning.
  bool skip_mismatch = false;
  /// Whether to match layers by name and leave layers missing in the file unchanged (default: match
  /// all layers, in order).
  bool by_name = false;
};

}  // namespace tessera
