#pragma once

#include <optional>
#include <string>

#include <tessera/framework/io/save_freq.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of ModelCheckpoint.
struct ModelCheckpointOptions {
  /// Key of the logs that decides which model is the best so far.
  std::string monitor = "val_loss";
  int verbose = 0;              ///< 0: silent; 1: reports each save and why one is skipped
  bool save_best_only = false;  ///< whether to save only models that improve on the best
  /// Whether `filepath` must name a file of weights.
  bool save_weights_only = false;
  /// Direction of improvement: "min" or "max"; "auto": "min" for a loss, the metric class' own
  /// direction for a compiled metric.
  std::string mode = "auto";
  /// When to save: "epoch", at the end of each, or every N batches.
  SaveFreq save_freq = "epoch";
  /// Value that the first save must improve on with `save_best_only` (default: none).
  std::optional<double> initial_value_threshold = std::nullopt;
  /// Whether a failed save ends training with its FileError or warns only.
  SaveFailure save_failure = SaveFailure::raise;
};

/// Saves the model during training, always or only when it is the best so far
/// (keras.callbacks.ModelCheckpoint). The extension of the path selects what is written: ".keras"
/// the model, for load_model(); ".weights.h5", ".weights.json" and ".safetensors" its weights, for
/// load_weights(); a path with another ending, a folder with the state of training, for Checkpoint.
/// NaN is never the best value.
class ModelCheckpoint : public CallbackHandle {
 public:
  /// `filepath` may contain fields for values of the logs, "{epoch:02d}-{val_loss:.2f}", see
  /// fill_template(). Throws ConfigError for an unknown mode, an empty path, one that ends in
  /// ".h5" or ".hdf5" alone, or with `save_weights_only` one that names no weights. Saving throws
  /// FileError.
  explicit ModelCheckpoint(const std::string& filepath, const ModelCheckpointOptions& options = {});
  /// Returns the best monitored value so far.
  std::optional<double> best() const;
};

}  // namespace tessera
