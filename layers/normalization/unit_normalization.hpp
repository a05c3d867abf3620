#pragma once

#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of UnitNormalization.
struct UnitNormalizationOptions {
  std::vector<int64_t> axis = {-1};  ///< axes of the vectors; several: of matrices and so on
  std::string name = "";             ///< first part of the weights' paths
  std::string dtype = "";            ///< policy; the default one if empty
  bool trainable = true;             ///< whether training changes the weights
};

/// y = x / max(‖x‖, 1e-12), vectors along the axes (keras.layers.UnitNormalization).
///
/// Shape: (batch, …) -> (batch, …). The mask stays. Throws ShapeError for an axis that the input
/// has not.
/// Communication: none if the axes are whole; where a mesh dimension cuts a vector, one all-reduce
/// of the squared norms.
class UnitNormalization : public LayerHandle {
 public:
  /// Throws ConfigError for no axes.
  explicit UnitNormalization(const UnitNormalizationOptions& options = {});
};

}  // namespace tessera
