#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <c10/core/ScalarType.h>

#include <tessera/framework/base/shape.hpp>

namespace tessera {

class Layer;
namespace detail {
struct Node;
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

 private:
  std::shared_ptr<const detail::Node> node_;
  size_t index_ = 0;
};

namespace detail {

/// One call of a layer on symbolic tensors.
struct Node {
  std::shared_ptr<Layer> layer;
  std::vector<SymbolicTensor> inputs;  ///< none for an Input
  std::vector<Shape> shapes;           ///< shapes of the outputs
  at::ScalarType dtype = at::kFloat;
  int64_t call = 0;                    ///< counts this layer's calls
};

}  // namespace detail

inline const Shape& SymbolicTensor::shape() const { return node_->shapes[index_]; }
inline at::ScalarType SymbolicTensor::dtype() const { return node_->dtype; }

}  // namespace tessera
