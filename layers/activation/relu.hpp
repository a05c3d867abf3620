#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of ReLU.
struct ReLUOptions {
  std::optional<double> max_value = std::nullopt;  ///< the largest output, from 0 on; absent: none
  double negative_slope = 0;                       ///< factor of x - threshold below, from 0 on
  double threshold = 0;                            ///< where x itself begins, from 0 on
  std::string name = "";                           ///< first part of the weights' paths
  std::string dtype = "";                          ///< policy; the default one if empty
  bool trainable = true;                           ///< whether training changes the weights
};

/// y = min(x, max_value) for x >= threshold, else negative_slope (x - threshold)
/// (keras.layers.ReLU).
///
/// Shape: (batch, …) -> (batch, …). The mask stays.
/// Communication: none.
///
///     ReLU({.max_value = 6})
class ReLU : public LayerHandle {
 public:
  /// Throws ConfigError for a negative option.
  explicit ReLU(const ReLUOptions& options = {});
};

}  // namespace tessera
