#pragma once

#include <memory>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Mixin for layers that can also be called with Keras' `reverse=True`, such as
/// ReversibleEmbedding.
class Reversible {
 public:
  virtual ~Reversible() = default;
  /// Returns a layer without weights, a ReversedCall, that makes such calls of `self`, this layer.
  virtual std::shared_ptr<Layer> reversed_call(const std::shared_ptr<Layer>& self) = 0;
};

/// Mixin for layers that call another one with `reverse=True`. In a graph they are layers of their
/// own; a configuration has their calls among those of the other layer, as Keras does.
class ReversedCall {
 public:
  virtual ~ReversedCall() = default;
  virtual const Layer& reversible() const = 0;
};

/// Whether calls of the layer are those of another one with `reverse=True`.
inline bool is_reversed(const Layer& layer) {
  return dynamic_cast<const ReversedCall*>(&layer) != nullptr;
}

/// Returns the layer that a configuration names for calls of `layer`.
inline const Layer& layer_in_config(const Layer& layer) {
  const auto* const reversed = dynamic_cast<const ReversedCall*>(&layer);
  return reversed ? reversed->reversible() : layer;
}

}  // namespace tessera::detail
