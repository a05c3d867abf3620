#include <tessera/layers/flatten.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

Shape FlattenLayer::output_shape(const Shapes& inputs) const {
  if (inputs.size() != 1 || inputs[0].empty()) {
    throw ShapeError("Flatten " + path(), "the input has a batch axis",
                     inputs.size() == 1 ? to_string(inputs[0]) : str(inputs.size(), " inputs"), "");
  }
  const Shape rest(inputs[0].begin() + 1, inputs[0].end());
  return {inputs[0][0], numel(rest)};
}

DTensor FlattenLayer::call(const Inputs& inputs, const CallContext&) {
  return ops::reshape(inputs[0], output_shape({inputs[0].shape()}));
}

}  // namespace tessera
