#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of PReLU.
struct PReLUOptions {
  InitializerHandle alpha_initializer = "zeros";  ///< initializer of `alpha`
  RegularizerHandle alpha_regularizer = {};       ///< penalty on `alpha`
  ConstraintHandle alpha_constraint = {};         ///< constraint on `alpha`
  /// Input axes, from 1 on, along which the slope is shared: {1, 2} for images gives one slope per
  /// channel.
  std::vector<int64_t> shared_axes = {};
  LayoutSpec alpha_layout = {};  ///< layout of `alpha`; overrides the layout map
  std::string name = "";         ///< first component of the weights' paths
  std::string dtype = "";        ///< dtype policy (default: the global policy)
  bool trainable = true;         ///< whether training changes the weights
};

/// y = x for x > 0, else alpha · x with learned slopes (keras.layers.PReLU).
///
/// Shape: (batch, …) -> (batch, …). The mask passes through. Throws ShapeError if an axis after the
/// batch that is not shared has an unknown extent, or another than when built.
/// Weights: alpha, of the input's shape without the batch, 1 along shared axes.
/// Communication: none forward; the gradient of `alpha` is a partial sum over the mesh dimensions
/// that shard the batch and the shared axes. config() omits layouts, which belong to a mesh.
///
///     PReLU({.shared_axes = {1, 2}})   // one slope for each channel of an image
class PReLU : public LayerHandle {
 public:
  /// Throws ConfigError for a shared axis below 1 or an unknown name.
  explicit PReLU(const PReLUOptions& options = {});
};

}  // namespace tessera
