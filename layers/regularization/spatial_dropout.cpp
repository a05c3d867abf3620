#include <tessera/layers/regularization/spatial_dropout.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/strings.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/regularization/noise.hpp>

namespace tessera {

SpatialDropoutLayer::SpatialDropoutLayer(int dimensions, double rate,
                                         const SpatialDropoutOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), dimensions_(dimensions),
      rate_(rate), channels_first_(options.data_format == "channels_first"), seed_(options.seed) {
  const std::string where = class_name() + " " + options.name;
  check_rate(where, rate);
  if (options.data_format == "channels_last" || (channels_first_ && dimensions > 1)) return;
  throw ConfigError(where,
                    dimensions == 1 ? "data_format is \"channels_last\""
                                    : "data_format is \"channels_last\" or \"channels_first\"",
                    in_quotes(options.data_format), "leave it out for \"channels_last\"");
}

std::string SpatialDropoutLayer::class_name() const {
  return str("SpatialDropout", dimensions_, "D");
}

Json SpatialDropoutLayer::config() const {
  Json json = Layer::config();
  json["rate"] = rate_;
  json["seed"] = seed_ ? Json(*seed_) : Json(nullptr);
  if (dimensions_ > 1) {
    json["data_format"] = channels_first_ ? "channels_first" : "channels_last";
  }
  return json;
}

Shape SpatialDropoutLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (static_cast<int>(input.size()) == dimensions_ + 2) return input;
  throw ShapeError(class_name() + " " + path(), str("the input has ", dimensions_ + 2, " axes"),
                   to_string(input), "give it batch, spatial and channel axes");
}

DTensor SpatialDropoutLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor& x = inputs[0];
  if (!context.training || rate_ == 0) return x;
  NoiseShape noise{Shape(static_cast<size_t>(dimensions_) + 2, 1)};
  noise.shape.front() = -1;
  noise.shape[channels_first_ ? 1 : noise.shape.size() - 1] = -1;
  return x * noise.factors(x, rate_, draw_seed(context, path(), x.mesh(), seed_));
}

LayerHandle spatial_dropout_from_config(int dimensions, JsonObject& config) {
  const LayerOptions base = take_layer_options(config);
  const auto rate = config.take<double>("rate");
  SpatialDropoutOptions options;
  if (dimensions > 1) options.data_format = config.take_or("data_format", options.data_format);
  options.seed = config.take_optional<int64_t>("seed");
  options.name = base.name;
  options.dtype = base.dtype;
  options.trainable = base.trainable;
  return LayerHandle(std::make_shared<SpatialDropoutLayer>(dimensions, rate, options));
}

}  // namespace tessera
