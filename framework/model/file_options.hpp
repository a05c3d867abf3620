#pragma once

#include <optional>

namespace tessera {

/// The options of Model::save().
struct SaveOptions {
  bool overwrite = true;  ///< whether a file that lies there may be replaced
  /// Whether the optimizer's variables are saved too, with which training goes on as it was.
  bool include_optimizer = true;
  /// Whether the files of the model go into one archive instead of a folder.
  bool zipped = true;
};

/// The options of Model::save_weights().
struct SaveWeightsOptions {
  bool overwrite = true;  ///< whether a file that lies there may be replaced
  /// Gigabytes (2^30 bytes) of weights that a file may have, in place of one of any size; the path
  /// then ends in ".weights.json".
  std::optional<double> max_shard_size = std::nullopt;
};

/// The options of Model::load_weights().
struct LoadWeightsOptions {
  /// Whether layers whose weights are others in the file are left as they are, with a warning.
  bool skip_mismatch = false;
  /// Whether layers take the weights of the layer of their name, and those that the file does not
  /// have are left as they are; otherwise the file's layers are the model's, in their order.
  bool by_name = false;
};

}  // namespace tessera
