#pragma once

#include <string>

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of ReduceLROnPlateau.
struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";  ///< the value of the logs that is to become better
  double factor = 0.1;               ///< new rate = rate · factor
  int64_t patience = 10;             ///< epochs without improvement
  int verbose = 0;                   ///< 0 silent, 1 a line for each reduction
  /// Whether the monitored value is to fall, "min", or to rise, "max"; "auto": a loss is to fall,
  /// a compiled metric to go the way of its class.
  std::string mode = "auto";
  double min_delta = 1e-4;  ///< a smaller change is no improvement
  int64_t cooldown = 0;     ///< epochs to wait after a reduction
  double min_lr = 0;        ///< the least rate that it sets
};

/// Lowers the learning rate when a value no longer improves, and logs it as "learning_rate"
/// (keras.callbacks.ReduceLROnPlateau).
class ReduceLROnPlateau : public CallbackHandle {
 public:
  /// Throws ConfigError for a factor of 1 or more or an unknown mode.
  explicit ReduceLROnPlateau(const ReduceLROnPlateauOptions& options = {});
};

}  // namespace tessera
