#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of ReLU.
struct ReLUOptions {
  std::optional<double> max_value = std::nullopt;  ///< largest output, at least 0 (default: ∞)
  double negative_slope = 0;                       ///< slope below threshold, at least 0
  double threshold = 0;                            ///< x from which y = x, at least 0
  std::string name = "";                           ///< first component of the weights' paths
  std::string dtype = "";                          ///< dtype policy (default: the global policy)
  bool trainable = true;                           ///< whether training changes the weights
};

/// y = min(x, max_value) for x >= threshold, else negative_slope (x - threshold)
/// (keras.layers.ReLU).
///
/// Shape: (batch, …) -> (batch, …). The mask passes through.
/// Communication: none.
///
///     ReLU({.max_value = 6})
class ReLU : public LayerHandle {
 public:
  /// Throws ConfigError for a negative option.
  explicit ReLU(const ReLUOptions& options = {});
};

}  // namespace tessera
