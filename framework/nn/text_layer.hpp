#pragma once

#include <span>
#include <string_view>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// A layer that makes numbers of texts, on the host. Texts are no DTensors, so it stands before a
/// model, not in it; an export keeps both together. Safe to call from several threads at a time.
class TextLayer : public Layer {
 public:
  using Layer::Layer;

  /// Whether it knows its vocabulary, so that transform() may be called.
  virtual bool ready() const = 0;
  /// The output of one text, without the batch axis; -1 for an extent that depends on the texts.
  virtual Shape text_shape() const = 0;
  /// The shape of the batch of these texts, found without making it.
  virtual Shape batch_shape(std::span<const std::string_view> texts) const;
  /// The batch of these texts: [texts, ...], on the host. Throws StateError unless ready().
  virtual at::Tensor transform(std::span<const std::string_view> texts) const = 0;
  /// The numbers of texts in a layout, each shard made by itself. Throws LayoutError for another
  /// rank.
  virtual DTensor transform(std::span<const std::string_view> texts,
                            const Layout& layout) const = 0;

  /// Throws ShapeError: the input is no tensor.
  Shape output_shape(const Shapes& inputs) const override;
};

}  // namespace tessera
