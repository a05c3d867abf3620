#include <tessera/layers/flatten.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

Shape FlattenLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = only(inputs);
  if (input.empty()) {
    throw ShapeError("Flatten " + path(), "the input has a batch axis", to_string(input),
                     "give it one");
  }
  const Shape rest(input.begin() + 1, input.end());
  const bool unknown = std::find(rest.begin(), rest.end(), -1) != rest.end();
  return {input[0], unknown ? -1 : numel(rest)};
}

DTensor FlattenLayer::call(const Inputs& inputs, const CallContext&) {
  return ops::reshape(inputs[0], output_shape({inputs[0].shape()}));
}

}  // namespace tessera
