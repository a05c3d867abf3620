#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// All axes after the batch merged into one (keras.layers.Flatten). Shape: (n, …) -> (n, product).
/// The first of them keeps its sharding, and takes over that of the others; shards whose borders
/// fall elsewhere fetch what they lack.
class FlattenLayer final : public Layer {
 public:
  explicit FlattenLayer(const LayerOptions& options) : Layer(options) {}
  std::string class_name() const override { return "Flatten"; }
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
};

class Flatten : public LayerHandle {
 public:
  explicit Flatten(const LayerOptions& options = {})
      : LayerHandle(std::make_shared<FlattenLayer>(options)) {}
};

}  // namespace tessera
