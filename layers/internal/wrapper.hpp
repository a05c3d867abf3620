#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// A layer made of other layers (keras.layers.Wrapper), whose paths are "path/inner". A derived
/// class defines config(), the output shapes, and how to build and call the inner layers.
class WrapperLayer : public Layer {
 public:
  bool supports_masking() const override { return true; }

 protected:
  explicit WrapperLayer(const LayerOptions& options) : Layer(options) {}
  /// Adds the handle's layer as a sublayer and returns it; `attribute` is its name in Keras' class.
  std::shared_ptr<Layer> add_inner(const std::string& attribute, const LayerHandle& handle);
  const std::shared_ptr<Layer>& inner(size_t i) const { return sublayers()[i]; }
};

}  // namespace tessera::detail
