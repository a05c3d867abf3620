#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// A layer that is made of others (keras.layers.Wrapper), which it names "path/inner". What is left
/// to a derived class: config(), shapes, building and calling them.
class WrapperLayer : public Layer {
 public:
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  explicit WrapperLayer(const LayerOptions& options) : Layer(options) {}
  /// The layer of the handle, now a part of this one, which Keras' class has as that attribute.
  std::shared_ptr<Layer> add_inner(const std::string& attribute, const LayerHandle& handle);
  const std::shared_ptr<Layer>& inner(size_t i) const { return sublayers()[i]; }
};

}  // namespace tessera::detail
