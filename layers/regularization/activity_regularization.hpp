#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of ActivityRegularization.
struct ActivityRegularizationOptions {
  double l1 = 0;           ///< factor of Σ|x|, from 0 on
  double l2 = 0;           ///< factor of Σx², from 0 on
  std::string name = "";   ///< first part of the weights' paths
  std::string dtype = "";  ///< policy; the default one if empty
  bool trainable = true;   ///< whether training changes the weights
};

/// The input itself, with the penalty (l1 Σ|x| + l2 Σx²) / batch on it
/// (keras.layers.ActivityRegularization).
///
/// Shape: (batch, …) -> (batch, …). The mask stays.
/// Communication: none; the penalty of a sharded input is pending.
///
///     ActivityRegularization({.l2 = 1e-4})
class ActivityRegularization : public LayerHandle {
 public:
  /// Throws ConfigError for a factor that is negative or not finite.
  explicit ActivityRegularization(const ActivityRegularizationOptions& options = {});
};

}  // namespace tessera
