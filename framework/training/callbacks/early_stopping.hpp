#pragma once

#include <optional>
#include <string>

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of EarlyStopping.
struct EarlyStoppingOptions {
  std::string monitor = "val_loss";  ///< the value of the logs that is to become better
  /// A smaller change is no improvement.
  double min_delta = 0;
  int64_t patience = 0;  ///< epochs without improvement after which training stops
  int verbose = 0;       ///< 0 silent, 1 says at which epoch it stopped and what it restored
  /// Whether the monitored value is to fall, "min", or to rise, "max"; "auto": a loss is to fall,
  /// a compiled metric to go the way of its class.
  std::string mode = "auto";
  /// What has to be bettered beside the best value so far.
  std::optional<double> baseline = std::nullopt;
  /// Whether the weights go back to those of the best epoch at the end. They are kept as handles:
  /// the next step writes its weights beside them.
  bool restore_best_weights = false;
  int64_t start_from_epoch = 0;  ///< epochs at the start that are not looked at
};

/// Stops when a value no longer improves (keras.callbacks.EarlyStopping).
class EarlyStopping : public CallbackHandle {
 public:
  /// Throws ConfigError for an unknown mode.
  explicit EarlyStopping(const EarlyStoppingOptions& options = {});
  /// The epoch at whose end training was stopped, from 0; 0 if it was not.
  int64_t stopped_epoch() const;
  int64_t best_epoch() const;
};

}  // namespace tessera
