#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Input.
struct InputOptions {
  /// dtype policy, or int32, int64, uint8 or bool (default: the global policy)
  std::string dtype = "";
  std::string name = "";    ///< the input's name (default: derived from its class)
  int64_t batch_size = -1;  ///< rows of each batch (default -1: any number)
};

/// The entry of a batch into a model: casts it to the input's dtype (keras.layers.InputLayer).
class InputLayer final : public Layer {
 public:
  /// `shape` excludes the batch axis; -1 is an unknown extent.
  InputLayer(const Shape& shape, const InputOptions& options);
  std::string class_name() const override { return "InputLayer"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }
  /// Whether this is an integer dtype or bool, which inputs may have though no layer computes in
  /// it.
  static bool is_countable(const std::string& dtype);
  /// Returns the batch's shape, (-1, …) unless the number of rows is fixed.
  const Shape& batch_shape() const { return batch_shape_; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override;
  at::ScalarType symbolic_dtype(const Shapes&) const override {
    return countable_.value_or(dtype_policy().compute);
  }

 private:
  std::optional<at::ScalarType> countable_;  ///< the input's dtype if it is an integer or bool
  Shape batch_shape_;
};

/// An input of a Functional model (keras.Input):
///
///     Input images({28, 28});
///     SymbolicTensor logits = Dense(10)(Flatten()(images));
///     Functional model({images}, {logits});
///
/// At the front of a Sequential it gives the shape that the model is built for.
class Input : public SymbolicTensor {
 public:
  /// `shape` excludes the batch axis; -1 is an unknown extent. Throws ShapeError for an extent of 0
  /// or below -1.
  explicit Input(const Shape& shape, const InputOptions& options = {});
  operator LayerHandle() const { return LayerHandle(node()->layer); }  // NOLINT: reads as a layer
};

}  // namespace tessera
