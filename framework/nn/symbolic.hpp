#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/tensor/axis_item.hpp>

namespace tessera {

class Layer;
namespace detail {
struct Node;

}  // namespace detail

/// A placeholder with shape and dtype but no data (keras.KerasTensor). Layers called on it return
/// further ones; Functional makes a model of the calls between its inputs and outputs.
class SymbolicTensor {
 public:
  SymbolicTensor() = default;
  /// Refers to output `index` of a call.
  SymbolicTensor(std::shared_ptr<const detail::Node> node, size_t index)
      : node_(std::move(node)), index_(index) {}

  bool defined() const { return node_ != nullptr; }
  /// The shape; -1 is an unknown extent, such as the batch size.
  const Shape& shape() const;
  at::ScalarType dtype() const;
  const std::shared_ptr<const detail::Node>& node() const { return node_; }
  size_t index() const { return index_; }

  /// Returns this tensor with a mask for the call that it is passed to: bool, with leading axes of
  /// this tensor's shape, like DTensor::with_mask(). In JSON it becomes the call's argument `mask`,
  /// `value_mask` or `key_mask`; Keras reads those that the layer's call() takes.
  ///
  ///     Input steps({20, 8}), counts({20}, {.dtype = "bool"});
  ///     Functional model({steps, counts}, {LSTM(16)(steps.with_mask(counts))});
  ///
  /// Throws StateError for an empty mask.
  SymbolicTensor with_mask(const SymbolicTensor& mask) const;

  /// Indexes and slices this tensor as in Python; "..." stands for all axes not named, "None"
  /// inserts an axis:
  ///
  ///     Input x({4, 6});
  ///     const SymbolicTensor first = x[{":", 0}];
  ///     const SymbolicTensor middle = x[{":", "1:3"}];
  ///     const SymbolicTensor last = x[{"...", -1}];
  ///
  /// Throws ConfigError for other texts and for an index that is out of range.
  SymbolicTensor operator[](std::initializer_list<AxisItem> items) const;
  /// The mask set by with_mask(); empty if there is none. Masks that layers compute are not
  /// symbolic tensors.
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
  std::vector<SymbolicTensor> inputs;  ///< arguments, then their masks; empty for an Input
  std::vector<size_t> masked;          ///< index of the argument that each mask belongs to
  std::vector<Shape> shapes;           ///< shapes of the outputs
  std::vector<at::ScalarType> dtypes;  ///< dtypes of the outputs
  int64_t call = 0;                    ///< index of this call among the layer's calls

  /// The number of inputs that are arguments of the call; the rest are masks.
  size_t arguments() const { return inputs.size() - masked.size(); }
};

}  // namespace detail

inline const Shape& SymbolicTensor::shape() const { return node_->shapes[index_]; }
inline at::ScalarType SymbolicTensor::dtype() const { return node_->dtypes[index_]; }

}  // namespace tessera
