#pragma once

#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of Pipeline.
struct PipelineOptions {
  std::string name = "";  ///< first component of the weights' paths
};

/// Chains layers into one (keras.layers.Pipeline), in a model or on host tensors. A second input,
/// labels, passes through MixUp and CutMix and around other layers; outputs() returns both. Unnamed
/// layers get a name each, so that no two draw the same numbers.
///
/// Shape: the last layer's.
///
///     const Pipeline augment(
///         {RandomFlip("horizontal"), RandomRotation(0.1), RandomContrast(0.2)});
///     at::Tensor changed = augment(images, 7);
class Pipeline : public AugmentationHandle {
 public:
  explicit Pipeline(const std::vector<LayerHandle>& layers, const PipelineOptions& options = {});
};

}  // namespace tessera
