#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of PReLU.
struct PReLUOptions {
  InitializerHandle alpha_initializer = "zeros";  ///< first values of `alpha`
  RegularizerHandle alpha_regularizer = {};       ///< penalty on `alpha`
  ConstraintHandle alpha_constraint = {};         ///< what `alpha` is brought back to
  /// Axes of the input, from 1 on, along which one slope serves all: {1, 2} of images gives one for
  /// each channel. None if empty.
  std::vector<int64_t> shared_axes = {};
  LayoutSpec alpha_layout = {};  ///< layout of `alpha`, over any layout map
  std::string name = "";         ///< first part of the weights' paths
  std::string dtype = "";        ///< policy; the default one if empty
  bool trainable = true;         ///< whether training changes the weights
};

/// y = x for x > 0, else alpha · x with slopes that are learned (keras.layers.PReLU).
///
/// Shape: (batch, …) -> (batch, …). The mask stays. Throws ShapeError for an input whose axes after
/// the batch, but for shared ones, are not of known extents, or not those it was built for.
/// Weights: alpha, of the input's shape without the batch, 1 along shared axes.
/// Communication: none forward; the gradient of `alpha` is pending over the mesh dimensions that
/// cut the batch and the shared axes. config() holds no layouts: they belong to a mesh.
///
///     PReLU({.shared_axes = {1, 2}})   // one slope for each channel of an image
class PReLU : public LayerHandle {
 public:
  /// Throws ConfigError for a shared axis before 1 or an unknown name.
  explicit PReLU(const PReLUOptions& options = {});
};

}  // namespace tessera
