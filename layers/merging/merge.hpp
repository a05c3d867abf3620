#pragma once

#include <tessera/framework/nn/layer.hpp>

/// Elementwise functions of several tensors.
///
/// Shape: the axes after the batch broadcast as in NumPy, also between ranks; batches are equal.
/// Throws ShapeError for inputs that do not broadcast or whose number is wrong.
/// Dtypes: if the inputs' dtypes differ, integers are cast to the compute dtype.
/// Masks: if all inputs have one, the output's mask is their logical or. Multiply, Maximum and
/// Minimum ignore masked elements.
/// Communication: a mesh dimension that shards an axis of one input shards it in the output; inputs
/// that are sharded differently cost a relayout of one. Partial sums over the same dimensions in
/// all inputs stay partial through Add and Subtract.
///
///     Add()({left, right})
namespace tessera {

/// The sum of any number of inputs (keras.layers.Add).
///
/// Shape: (batch, …) each, broadcast after the batch as in NumPy -> (batch, …). A step is masked if
/// all inputs mask it.
/// Communication: none for inputs in one layout; partial sums stay partial.
class Add : public LayerHandle {
 public:
  explicit Add(const LayerOptions& options = {});
};

/// The first input minus the second (keras.layers.Subtract).
///
/// Shape: (batch, …) each, broadcast after the batch as in NumPy -> (batch, …). A step is masked if
/// both inputs mask it.
/// Communication: none for inputs in one layout; partial sums stay partial.
class Subtract : public LayerHandle {
 public:
  explicit Subtract(const LayerOptions& options = {});
};

/// The product of any number of inputs, ignoring masked elements (keras.layers.Multiply).
///
/// Shape: (batch, …) each, broadcast after the batch as in NumPy -> (batch, …). A step is masked if
/// all inputs mask it.
/// Communication: none for inputs in one layout.
class Multiply : public LayerHandle {
 public:
  explicit Multiply(const LayerOptions& options = {});
};

/// The mean of any number of inputs, in the compute dtype (keras.layers.Average).
///
/// Shape: (batch, …) each, broadcast after the batch as in NumPy -> (batch, …). A step is masked if
/// all inputs mask it.
/// Communication: none for inputs in one layout.
class Average : public LayerHandle {
 public:
  explicit Average(const LayerOptions& options = {});
};

/// The maximum of any number of inputs, ignoring masked elements (keras.layers.Maximum).
///
/// Shape: (batch, …) each, broadcast after the batch as in NumPy -> (batch, …). A step is masked if
/// all inputs mask it.
/// Communication: none for inputs in one layout.
class Maximum : public LayerHandle {
 public:
  explicit Maximum(const LayerOptions& options = {});
};

/// The minimum of any number of inputs, ignoring masked elements (keras.layers.Minimum).
///
/// Shape: (batch, …) each, broadcast after the batch as in NumPy -> (batch, …). A step is masked if
/// all inputs mask it.
/// Communication: none for inputs in one layout.
class Minimum : public LayerHandle {
 public:
  explicit Minimum(const LayerOptions& options = {});
};

}  // namespace tessera
