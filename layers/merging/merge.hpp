#pragma once

#include <tessera/framework/nn/layer.hpp>

/// Elementwise functions of several tensors.
///
/// Shape: the axes after the batch broadcast as in NumPy, also where ranks differ; batches are
/// equal. Throws ShapeError for inputs that do not broadcast or are too many or few.
/// Numbers: where inputs have several dtypes, whole numbers become the compute dtype.
/// Masks: where all inputs have one, the output's leaves out what each of them does; products and
/// extremes pass over what an input's mask leaves out.
/// Communication: a mesh dimension that cuts an axis of one input cuts it in the output; two that
/// are cut differently cost a relayout of one. Sums that are pending over the same dimensions in
/// all inputs stay pending through Add and Subtract.
///
///     Add()({left, right})
namespace tessera {

/// The sum of any number of inputs (keras.layers.Add).
///
/// Shape: (batch, …) of each, which broadcast after the batch as in NumPy -> (batch, …). The mask
/// leaves out what those of all inputs do.
/// Communication: none for inputs in one layout; pending sums stay pending.
class Add : public LayerHandle {
 public:
  explicit Add(const LayerOptions& options = {});
};

/// The first of two inputs minus the second (keras.layers.Subtract).
///
/// Shape: (batch, …) of both, which broadcast after the batch as in NumPy -> (batch, …). The mask
/// leaves out what those of both inputs do.
/// Communication: none for inputs in one layout; pending sums stay pending.
class Subtract : public LayerHandle {
 public:
  explicit Subtract(const LayerOptions& options = {});
};

/// The product of any number of inputs, but what an input's mask leaves out
/// (keras.layers.Multiply).
///
/// Shape: (batch, …) of each, which broadcast after the batch as in NumPy -> (batch, …). The mask
/// leaves out what those of all inputs do.
/// Communication: none for inputs in one layout.
class Multiply : public LayerHandle {
 public:
  explicit Multiply(const LayerOptions& options = {});
};

/// The mean of any number of inputs, in the compute dtype (keras.layers.Average).
///
/// Shape: (batch, …) of each, which broadcast after the batch as in NumPy -> (batch, …). The mask
/// leaves out what those of all inputs do.
/// Communication: none for inputs in one layout.
class Average : public LayerHandle {
 public:
  explicit Average(const LayerOptions& options = {});
};

/// The largest of any number of inputs, but what an input's mask leaves out (keras.layers.Maximum).
///
/// Shape: (batch, …) of each, which broadcast after the batch as in NumPy -> (batch, …). The mask
/// leaves out what those of all inputs do.
/// Communication: none for inputs in one layout.
class Maximum : public LayerHandle {
 public:
  explicit Maximum(const LayerOptions& options = {});
};

/// The smallest of any number of inputs, but what an input's mask leaves out
/// (keras.layers.Minimum).
///
/// Shape: (batch, …) of each, which broadcast after the batch as in NumPy -> (batch, …). The mask
/// leaves out what those of all inputs do.
/// Communication: none for inputs in one layout.
class Minimum : public LayerHandle {
 public:
  explicit Minimum(const LayerOptions& options = {});
};

}  // namespace tessera
