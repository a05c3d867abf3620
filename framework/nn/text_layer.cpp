#include <tessera/framework/nn/text_layer.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>

namespace tessera {

using namespace detail;

Shape TextLayer::batch_shape(std::span<const std::string_view> texts) const {
  Shape shape = text_shape();
  shape.insert(shape.begin(), static_cast<int64_t>(texts.size()));
  const bool known = std::find(shape.begin(), shape.end(), -1) == shape.end();
  return known ? shape : transform(texts).sizes().vec();
}

Shape TextLayer::output_shape(const Shapes&) const {
  throw ShapeError(str(class_name(), " ", path()), "a text layer runs before a model, not in it",
                   "tensors",
                   "leave it out of the model: fit() on its dataset(texts), predict() on "
                   "transform(texts), and pass both to export_model()");
}

}  // namespace tessera
