#include <tessera/framework/nn/text_layer.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera {

Shape TextLayer::output_shape(const Shapes&) const {
  throw ShapeError(class_name(), "the layer is called on texts", "tensors",
                   "call transform() on texts and give the model its result");
}

}  // namespace tessera
