#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include <tessera/framework/base/shape.hpp>

namespace tessera {

class Layer;
namespace detail {
struct Node;

/// What is taken of one axis: a place, or a text as in Python.
struct AxisItem {
  AxisItem(const char* part) : text(part) {}         // NOLINT: reads as data
  AxisItem(const std::string& part) : text(part) {}  // NOLINT
  template <std::integral T>
  AxisItem(T place) : text(std::to_string(place)) {}  // NOLINT

  std::string text;
};

}  // namespace detail

/// A tensor that a model will have: shape and dtype, no numbers (keras.KerasTensor). Layers called
/// on it give further ones; Functional makes a model of those between its inputs and outputs.
class SymbolicTensor {
 public:
  SymbolicTensor() = default;
  /// Output `index` of a call.
  SymbolicTensor(std::shared_ptr<const detail::Node> node, size_t index)
      : node_(std::move(node)), index_(index) {}

  bool defined() const { return node_ != nullptr; }
  /// -1 is an extent not known yet, the batch's.
  const Shape& shape() const;
  at::ScalarType dtype() const;
  const std::shared_ptr<const detail::Node>& node() const { return node_; }
  size_t index() const { return index_; }

  /// This tensor with a mask, for the call that it is passed to: bool, of the leading axes of its
  /// shape, as DTensor::with_mask gives one to a value. In JSON it is the call's `mask`, or its
  /// value_mask or key_mask; Keras reads those that calls of the layer take there.
  ///
  ///     Input steps({20, 8}), counts({20}, {.dtype = "bool"});
  ///     Functional model({steps, counts}, {LSTM(16)(steps.with_mask(counts))});
  ///
  /// Throws StateError for an empty mask.
  SymbolicTensor with_mask(const SymbolicTensor& mask) const;

  /// A part of this tensor, by places and slices of its axes as in Python, where "..." stands for
  /// all axes that are not named and "None" for a new one:
  ///
  ///     Input x({4, 6});
  ///     const SymbolicTensor first = x[{":", 0}];
  ///     const SymbolicTensor middle = x[{":", "1:3"}];
  ///     const SymbolicTensor last = x[{"...", -1}];
  ///
  /// Throws ConfigError for other texts and for places outside an axis.
  SymbolicTensor operator[](std::initializer_list<detail::AxisItem> items) const;
  /// The mask that with_mask() gave; empty without. One that a layer makes is no tensor of a model.
  SymbolicTensor mask() const { return mask_ ? *mask_ : SymbolicTensor(); }

 private:
  std::shared_ptr<const detail::Node> node_;
  size_t index_ = 0;
  std::shared_ptr<const SymbolicTensor> mask_;
};

namespace detail {

/// One call of a layer on symbolic tensors.
struct Node {
  std::shared_ptr<Layer> layer;
  std::vector<SymbolicTensor> inputs;  ///< none for an Input; masks that were given come last
  std::vector<size_t> masked;          ///< the inputs that those are the masks of
  std::vector<Shape> shapes;           ///< shapes of the outputs
  std::vector<at::ScalarType> dtypes;  ///< and their dtypes
  int64_t call = 0;                    ///< counts this layer's calls

  /// How many of the inputs the layer is called on; the others are their masks.
  size_t arguments() const { return inputs.size() - masked.size(); }
};

}  // namespace detail

inline const Shape& SymbolicTensor::shape() const { return node_->shapes[index_]; }
inline at::ScalarType SymbolicTensor::dtype() const { return node_->dtypes[index_]; }

}  // namespace tessera
