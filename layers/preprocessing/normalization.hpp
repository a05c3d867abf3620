#pragma once

#include <vector>

#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/nn/array_option.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Normalization.
struct NormalizationOptions {
  /// Axes whose every index has a mean and variance of its own; one of each in all if empty (Keras'
  /// None).
  std::vector<int64_t> axis = {-1};
  ArrayOption mean = {};      ///< known means, one for each index of `axis`; none: adapt() learns
  ArrayOption variance = {};  ///< known variances, given with `mean`
  bool invert = false;        ///< computes x from y instead
  std::string name = "";      ///< first part of the weights' paths
  std::string dtype = "";     ///< policy; the default one if empty
  bool trainable = true;      ///< whether training changes the weights
};

/// y = (x - mean) / max(sqrt(variance), 1e-7), or x · max(sqrt(variance), 1e-7) + mean with
/// `invert` (keras.layers.Normalization), in the compute dtype, also of whole numbers.
///
/// Shape: (batch, …) -> (batch, …). The mask stays. Throws ShapeError for an input that lacks an
/// axis, does not tell its extent, or has another than when built.
/// Weights: mean and variance (the extents of `axis`), 0 and 1 until adapt(), and count (), int64,
/// always 0; not trainable. None if the options give mean and variance.
/// Communication: none while the statistics are replicated.
///
///     Normalization normalization;
///     normalization.adapt(data);
class Normalization : public LayerHandle {
 public:
  /// Throws ConfigError unless mean and variance are given together, of one shape and no more axes
  /// than `axis`.
  explicit Normalization(const NormalizationOptions& options = {});

  /// Learns mean and variance from data with a batch axis, the same on every process; builds the
  /// layer if it was not. What it learned before is forgotten. Throws ShapeError for data of
  /// another shape than it was built for, StateError if mean and variance were given, ConfigError
  /// for no rows.
  void adapt(const at::Tensor& data) const;
  /// Learns mean and variance from the first input of a dataset, as from a tensor of all its rows.
  /// Where the weights lie on a mesh of several processes, as in a DefaultMeshScope of it or in a
  /// compiled model, each process reads its part of the rows, and their moments are gathered once,
  /// so that all learn the same; it is collective then, unless `axis` has the rows' axis.
  void adapt(const DatasetHandle& data) const;
};

}  // namespace tessera
