#pragma once

#include <optional>
#include <string>

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of EarlyStopping.
struct EarlyStoppingOptions {
  std::string monitor = "val_loss";  ///< value of the logs that should improve
  /// A smaller change is no improvement.
  double min_delta = 0;
  int64_t patience = 0;  ///< epochs without improvement after which training stops
  int verbose = 0;       ///< 0 silent, 1 says at which epoch it stopped and what it restored
  /// Direction of improvement: "min" (fall), "max" (rise) or "auto" (default): a loss should fall,
  /// a compiled metric follows its class.
  std::string mode = "auto";
  /// Value that an improvement must beat, besides the best one so far, to reset the patience
  /// (default: none).
  std::optional<double> baseline = std::nullopt;
  /// Whether training ends with the weights of the best epoch, and the states of stateful layers at
  /// its end. They are kept as handles, not copied: the next step writes to new memory.
  bool restore_best_weights = false;
  int64_t start_from_epoch = 0;  ///< number of first epochs to ignore
};

/// Stops training when a value no longer improves (keras.callbacks.EarlyStopping).
class EarlyStopping : public CallbackHandle {
 public:
  /// Throws ConfigError for an unknown mode.
  explicit EarlyStopping(const EarlyStoppingOptions& options = {});
  /// Returns the epoch after which training was stopped, counted from 0; 0 if it was not.
  int64_t stopped_epoch() const;
  int64_t best_epoch() const;
};

}  // namespace tessera
