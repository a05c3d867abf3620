#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The input itself (keras.layers.Identity). Shape, layout and mask stay.
class IdentityLayer final : public Layer {
 public:
  using Layer::Layer;
  std::string class_name() const override { return "Identity"; }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override { return inputs[0]; }
};

class Identity : public LayerHandle {
 public:
  explicit Identity(const LayerOptions& options = {})
      : LayerHandle(std::make_shared<IdentityLayer>(options)) {}
};

}  // namespace tessera
