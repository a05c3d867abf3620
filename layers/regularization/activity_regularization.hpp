#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of ActivityRegularization.
struct ActivityRegularizationOptions {
  double l1 = 0;           ///< factor of Σ|x|, at least 0
  double l2 = 0;           ///< factor of Σx², at least 0
  std::string name = "";   ///< first component of the weights' paths
  std::string dtype = "";  ///< dtype policy (default: the global policy)
  bool trainable = true;   ///< whether training changes the weights
};

/// Identity that adds the penalty (l1 Σ|x| + l2 Σx²) / batch to the loss
/// (keras.layers.ActivityRegularization).
///
/// Shape: (batch, …) -> (batch, …). The mask passes through.
/// Communication: none; the penalty of a sharded input is a partial sum.
///
///     ActivityRegularization({.l2 = 1e-4})
class ActivityRegularization : public LayerHandle {
 public:
  /// Throws ConfigError for a factor that is negative or not finite.
  explicit ActivityRegularization(const ActivityRegularizationOptions& options = {});
};

}  // namespace tessera
