#include <tessera/layers/reshaping/flatten.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/strings.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

FlattenLayer::FlattenLayer(const FlattenOptions& options)
    : Layer({options.name, options.dtype, options.trainable}),
      channels_first_(options.data_format == "channels_first") {
  if (channels_first_ || options.data_format == "channels_last") return;
  throw ConfigError("Flatten " + options.name,
                    "data_format is \"channels_last\" or \"channels_first\"",
                    in_quotes(options.data_format), "write one of the two");
}

Json FlattenLayer::config() const {
  Json json = Layer::config();
  json["data_format"] = channels_first_ ? "channels_first" : "channels_last";
  return json;
}

Shape FlattenLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (input.empty()) {
    throw ShapeError("Flatten " + path(), "the input has a batch axis", to_string(input),
                     "give it one");
  }
  const Shape rest(input.begin() + 1, input.end());
  const bool unknown = std::find(rest.begin(), rest.end(), -1) != rest.end();
  return {input[0], unknown ? -1 : numel(rest)};
}

DTensor FlattenLayer::call(const Inputs& inputs, const CallContext&) {
  DTensor x = inputs[0];
  if (channels_first_ && x.rank() > 2) {
    std::vector<int64_t> axes = {0};
    for (int64_t a = 2; a < x.rank(); ++a) axes.push_back(a);
    axes.push_back(1);
    x = ops::transpose(x, axes);
  }
  return ops::reshape(x, output_shape({x.shape()}));
}

Flatten Flatten::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  return Flatten({.data_format = config.take_or<std::string>("data_format", "channels_last"),
                  .name = options.name,
                  .dtype = options.dtype,
                  .trainable = options.trainable});
}

}  // namespace tessera
