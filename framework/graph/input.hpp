#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Input.
struct InputOptions {
  /// A dtype of layers, or int32, int64, uint8 or bool; empty: that of the default policy.
  std::string dtype = "";
  std::string name = "";    ///< the input's own; empty: made of its class
  int64_t batch_size = -1;  ///< of how many samples each batch is; -1: of any number
};

/// Where a batch enters a model: passes it on in its own dtype (keras.layers.InputLayer).
class InputLayer final : public Layer {
 public:
  /// `shape` is without the batch axis; -1 is an extent not known yet.
  InputLayer(const Shape& shape, const InputOptions& options);
  std::string class_name() const override { return "InputLayer"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }
  /// Whether an input can be of this dtype, though no layer computes in it: int32.
  static bool is_countable(const std::string& dtype);
  /// The batch's shape, (-1, …) unless it has a fixed number of samples.
  const Shape& batch_shape() const { return batch_shape_; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override;
  at::ScalarType symbolic_dtype(const Shapes&) const override {
    return countable_.value_or(dtype_policy().compute);
  }

 private:
  std::optional<at::ScalarType> countable_;  ///< the dtype of whole numbers and truth values
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
