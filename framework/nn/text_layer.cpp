#include <tessera/framework/nn/text_layer.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera {

using namespace detail;

Shape TextLayer::output_shape(const Shapes&) const {
  throw ShapeError(str(class_name(), " ", path()), "the layer stands before a model, not in it",
                   "tensors",
                   "leave it out of the model: fit() on its dataset(texts), predict on what it "
                   "makes of texts, and name both in export_model()");
}

}  // namespace tessera
