#pragma once

#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of UnitNormalization.
struct UnitNormalizationOptions {
  std::vector<int64_t> axis = {-1};  ///< axes to normalize over
  std::string name = "";             ///< first component of the weights' paths
  std::string dtype = "";            ///< dtype policy (default: the global policy)
  bool trainable = true;             ///< whether training changes the weights
};

/// y = x / max(‖x‖, 1e-12), with the L2 norm over `axis` (keras.layers.UnitNormalization).
///
/// Shape: (batch, …) -> (batch, …). The mask passes through. Throws ShapeError for an axis that the
/// input lacks.
/// Communication: none if the axes are replicated; if one is sharded, one all-reduce of the squared
/// norms.
class UnitNormalization : public LayerHandle {
 public:
  /// Throws ConfigError for no axes.
  explicit UnitNormalization(const UnitNormalizationOptions& options = {});
};

}  // namespace tessera
