#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct InputOptions {
  std::string dtype = "";
  std::string name = "";
};

/// Where a batch enters a model: passes it on in its own dtype (keras.layers.InputLayer).
class InputLayer final : public Layer {
 public:
  /// `shape` is without the batch axis; -1 is an extent not known yet.
  InputLayer(const Shape& shape, const InputOptions& options);
  std::string class_name() const override { return "InputLayer"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;
  /// The batch's shape, (-1, …).
  const Shape& batch_shape() const { return batch_shape_; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override;

 private:
  Shape batch_shape_;
};

/// Where a Functional model begins (keras.Input):
///
///     Input images({28, 28});
///     SymbolicTensor logits = Dense(10)(Flatten()(images));
///     Functional model({images}, {logits});
///
/// As the first of a Sequential's layers it says for which shape the model is built.
class Input : public SymbolicTensor {
 public:
  /// `shape` is without the batch axis. Throws ShapeError for an extent of 0 or below -1.
  explicit Input(const Shape& shape, const InputOptions& options = {});
  operator LayerHandle() const { return LayerHandle(node()->layer); }  // NOLINT: reads as a layer
};

}  // namespace tessera
