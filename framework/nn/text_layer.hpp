#pragma once

#include <span>
#include <string_view>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Base of layers that turn texts into tensors, on the host. Texts are not DTensors, so a text
/// layer runs before a model, not in it; an export stores both together. Thread-safe.
class TextLayer : public Layer {
 public:
  using Layer::Layer;

  /// Whether it has a vocabulary, so that transform() may be called.
  virtual bool ready() const = 0;
  /// Returns the output shape of one text, without the batch axis; -1 for an extent that depends on
  /// the texts.
  virtual Shape text_shape() const = 0;
  /// Returns the shape of transform(texts), computed without transforming them if text_shape() is
  /// fully known.
  virtual Shape batch_shape(std::span<const std::string_view> texts) const;
  /// Transforms texts into one batch (texts, …), on the host. Throws StateError unless ready().
  virtual at::Tensor transform(std::span<const std::string_view> texts) const = 0;
  /// Transforms texts into a batch in `layout`, each shard by itself. Throws LayoutError if the
  /// layout has another rank.
  virtual DTensor transform(std::span<const std::string_view> texts,
                            const Layout& layout) const = 0;

  /// Always throws ShapeError: texts are not tensors.
  Shape output_shape(const Shapes& inputs) const override;
};

}  // namespace tessera
