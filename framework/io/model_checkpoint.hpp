#pragma once

#include <optional>
#include <string>

#include <tessera/framework/io/save_freq.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of ModelCheckpoint.
struct ModelCheckpointOptions {
  std::string monitor = "val_loss";
  int verbose = 0;
  bool save_best_only = false;
  /// Whether to write a safetensors file with the weights, else a checkpoint folder.
  bool save_weights_only = false;
  std::string mode = "auto";  ///< "min", "max", "auto"
  SaveFreq save_freq = "epoch";
  /// What has to be bettered for the first save with `save_best_only`.
  std::optional<double> initial_value_threshold = std::nullopt;
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
  explicit ModelCheckpoint(const std::string& filepath,
                           const ModelCheckpointOptions& options = {});
  /// The best value so far of what is monitored.
  std::optional<double> best() const;
};

}  // namespace tessera
