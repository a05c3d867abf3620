#pragma once

#include <optional>
#include <string>

#include <tessera/framework/io/save_freq.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of ModelCheckpoint.
struct ModelCheckpointOptions {
  /// The value of the logs by which a model is the best so far.
  std::string monitor = "val_loss";
  int verbose = 0;              ///< 0 silent, 1 says when it saves and why it does not
  bool save_best_only = false;  ///< whether only a model is saved that betters the best so far
  /// Whether to write a safetensors file with the weights, else a checkpoint folder.
  bool save_weights_only = false;
  /// Whether the monitored value is to fall, "min", or to rise, "max"; "auto": a loss is to fall,
  /// a compiled metric to go the way of its class.
  std::string mode = "auto";
  /// When to save: "epoch", at the end of each, or after every so many batches.
  SaveFreq save_freq = "epoch";
  /// What has to be bettered for the first save with `save_best_only`.
  std::optional<double> initial_value_threshold = std::nullopt;
  /// Whether a save that fails ends training with its FileError, or warns and lets it go on.
  detail::SaveFailure save_failure = detail::SaveFailure::raise;
};

/// Saves the model while it trains, always or when it is the best so far
/// (keras.callbacks.ModelCheckpoint). A folder is restored with Checkpoint, a file with
/// load_weights(). Not a number is never best.
class ModelCheckpoint : public CallbackHandle {
 public:
  /// `filepath` may have values of the logs in it, "{epoch:02d}-{val_loss:.2f}", see
  /// fill_template(). Throws ConfigError for an unknown mode, no path, or a name that does not end
  /// in ".safetensors" with `save_weights_only`. Saving throws FileError.
  explicit ModelCheckpoint(const std::string& filepath, const ModelCheckpointOptions& options = {});
  /// The best value so far of what is monitored.
  std::optional<double> best() const;
};

}  // namespace tessera
