#pragma once

#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of Pipeline.
struct PipelineOptions {
  std::string name = "";  ///< first part of the weights' paths
};

/// Layers one after the other as one (keras.layers.Pipeline), in a model or on tensors of the host.
/// Labels, a second input, pass MixUp and CutMix with the images; outputs() gives both. Layers
/// without a name get one each here, so that none draws as another does.
///
/// Shape: that of the last layer.
///
///     const Pipeline augment({RandomFlip("horizontal"), RandomRotation(0.1),
///     RandomContrast(0.2)}); at::Tensor changed = augment(images, 7);
class Pipeline : public detail::AugmentationHandle {
 public:
  explicit Pipeline(const std::vector<LayerHandle>& layers, const PipelineOptions& options = {});
};

}  // namespace tessera
