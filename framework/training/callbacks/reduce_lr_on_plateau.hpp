#pragma once

#include <string>

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of ReduceLROnPlateau.
struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";  ///< value of the logs that should improve
  double factor = 0.1;               ///< new rate = rate · factor
  int64_t patience = 10;             ///< epochs without improvement before a reduction
  int verbose = 0;                   ///< 0 silent, 1 a line for each reduction
  /// Direction of improvement: "min" (fall), "max" (rise) or "auto" (default): a loss should fall,
  /// a compiled metric follows its class.
  std::string mode = "auto";
  double min_delta = 1e-4;  ///< a smaller change is no improvement
  int64_t cooldown = 0;     ///< epochs to wait after a reduction
  double min_lr = 0;        ///< lower bound of the new rate
};

/// Lowers the learning rate when a value no longer improves, and logs it as "learning_rate"
/// (keras.callbacks.ReduceLROnPlateau).
class ReduceLROnPlateau : public CallbackHandle {
 public:
  /// Throws ConfigError for a factor of 1 or more or an unknown mode.
  explicit ReduceLROnPlateau(const ReduceLROnPlateauOptions& options = {});
};

}  // namespace tessera
