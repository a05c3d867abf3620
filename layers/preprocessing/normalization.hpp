#pragma once

#include <vector>

#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/nn/array_option.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Normalization.
struct NormalizationOptions {
  /// Axes of which each index has its own mean and variance; if empty, one of each over all
  /// elements (Keras' None).
  std::vector<int64_t> axis = {-1};
  ArrayOption mean = {};      ///< one for each index of `axis` (default: adapt() learns them)
  ArrayOption variance = {};  ///< given together with `mean`
  bool invert = false;        ///< whether to compute x from y instead
  std::string name = "";      ///< first component of the weights' paths
  std::string dtype = "";     ///< dtype policy (default: the global policy)
  bool trainable = true;      ///< whether training changes the weights
};

/// Normalizes inputs: y = (x - mean) / max(sqrt(variance), 1e-7), or x · max(sqrt(variance), 1e-7)
/// + mean with `invert`, in the compute dtype, also for integers (keras.layers.Normalization).
///
/// Shape: (batch, …) -> (batch, …). The mask stays. Throws ShapeError for an input that lacks an
/// axis of `axis`, or whose extent there is unknown or not the one it was built for.
/// Weights: mean and variance (the extents of `axis`), 0 and 1 until adapt(), and count (), int64,
/// always 0; not trainable. None if the options give mean and variance.
/// Communication: none while the statistics are replicated.
///
///     Normalization normalization;
///     normalization.adapt(data);
class Normalization : public LayerHandle {
 public:
  /// Throws ConfigError unless mean and variance are given together, with the same shape and no
  /// more axes than `axis`.
  explicit Normalization(const NormalizationOptions& options = {});

  /// Learns mean and variance from data with a batch axis, which must be the same on every process;
  /// replaces earlier ones. Builds the layer if needed. Throws ShapeError for data of another shape
  /// than it was built for, StateError if the options give mean and variance, ConfigError for no
  /// rows.
  void adapt(const at::Tensor& data) const;
  /// Learns mean and variance from the first input of a dataset, as from a tensor of all its rows.
  /// If the weights are placed on a mesh of several processes (in a DefaultMeshScope or a compiled
  /// model), this is collective: each process reads its share of the rows, and their moments are
  /// all-gathered once, so that all learn the same. If `axis` contains the rows' axis, each process
  /// reads all rows and nothing is communicated.
  void adapt(const DatasetHandle& data) const;
};

}  // namespace tessera
