#include <tessera/layers/reshaping/repeat_vector.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

RepeatVectorLayer::RepeatVectorLayer(int64_t n, const LayerOptions& options)
    : Layer(options), n_(n) {
  if (n >= 1) return;
  throw ConfigError("RepeatVector " + options.name, "n is at least 1", str(n),
                    "give the number of copies");
}

Json RepeatVectorLayer::config() const {
  Json json = Layer::config();
  json["n"] = n_;
  return json;
}

Shape RepeatVectorLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (input.size() != 2) {
    throw ShapeError("RepeatVector " + path(), "the input is (batch, features)", to_string(input),
                     "flatten it first");
  }
  return {input[0], n_, input[1]};
}

DTensor RepeatVectorLayer::call(const Inputs& inputs, const CallContext&) {
  return ops::broadcast_to(ops::expand_dims(inputs[0], 1), output_shape({inputs[0].shape()}));
}

RepeatVector RepeatVector::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  return RepeatVector(take_extent(config, "n"), options);
}

}  // namespace tessera
