#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  /// Safetensors files only: RE2 expressions and their replacements, such as {"^fc1\\.", "dense/"},
  /// applied in this order to each name of the file; a name must then be a weight's path. In a
  /// replacement \\1 is the first group. A name that becomes empty is left out (default: names are
  /// paths).
  std::vector<std::pair<std::string, std::string>> rename = {};
  /// Safetensors files only: RE2 expressions for the paths of weights that the file has in
  /// PyTorch's layout: matrices as (out, in), kernels of convolutions as (out, in, height, width),
  /// of transposed ones as (in, out, height, width). Axes that the model splits, such as the heads
  /// of attention or the channels of depthwise kernels, may be one axis there (default: none).
  std::vector<std::string> transpose = {};
  /// Whether float16, bfloat16, float32 and float64 of a safetensors file are converted to the
  /// weights' dtypes; weights of another dtype are refused otherwise. Keras' files are always
  /// converted.
  bool cast = false;
};

}  // namespace tessera
