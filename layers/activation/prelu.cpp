#include <tessera/layers/activation/prelu.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>

namespace tessera {

PReLULayer::PReLULayer(const PReLUOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), options_(options) {
  for (const int64_t axis : options.shared_axes) {
    if (axis >= 1) continue;
    throw ConfigError("PReLU " + options.name, "shared_axes are axes after the batch, from 1 on",
                      to_string(options.shared_axes), "leave axis 0 out and count from the front");
  }
  if (!options.alpha_layout.empty()) set_weight_layout("alpha", options.alpha_layout);
}

Json PReLULayer::config() const {
  Json json = Layer::config();
  json["alpha_initializer"] = serialized(options_.alpha_initializer);
  json["alpha_regularizer"] = serialized(options_.alpha_regularizer);
  json["alpha_constraint"] = serialized(options_.alpha_constraint);
  json["shared_axes"] = options_.shared_axes.empty() ? Json(nullptr) : Json(options_.shared_axes);
  return json;
}

bool PReLULayer::is_shared(size_t axis) const {
  const auto& axes = options_.shared_axes;
  return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
}

Shape PReLULayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  const int64_t rank = static_cast<int64_t>(input.size());
  for (const int64_t axis : options_.shared_axes) {
    if (axis < rank) continue;
    throw ShapeError("PReLU " + path(), str("the input has the shared axis ", axis),
                     to_string(input), "name axes of the input");
  }
  bool fits = rank >= 2 && (!built() || alpha_.shape().size() + 1 == input.size());
  for (size_t a = 1; fits && a < input.size(); ++a) {
    if (is_shared(a)) continue;
    fits = input[a] >= 0 && (!built() || input[a] == alpha_.shape()[a - 1]);
  }
  if (fits) return input;
  throw ShapeError("PReLU " + path(),
                   built() ? str("the slopes ", to_string(alpha_.shape()), " fit the input")
                           : "the input has axes of known extents after the batch",
                   to_string(input), "pass inputs as when built, or share the axis");
}

void PReLULayer::make_weights(const Shapes& inputs) {
  Shape shape(inputs[0].begin() + 1, inputs[0].end());
  for (size_t a = 1; a < inputs[0].size(); ++a) {
    if (is_shared(a)) shape[a - 1] = 1;
  }
  alpha_ = add_weight(
      "alpha", shape, options_.alpha_initializer,
      {.regularizer = options_.alpha_regularizer, .constraint = options_.alpha_constraint});
}

DTensor PReLULayer::call(const Inputs& inputs, const CallContext&) {
  const DTensor& x = inputs[0];
  return ops::relu(x) - read(alpha_) * ops::relu(ops::neg(x));
}

PReLU PReLU::from_config(JsonObject& config) {
  const LayerOptions base = take_layer_options(config);
  PReLUOptions options;
  options.alpha_initializer = config.take_or("alpha_initializer", options.alpha_initializer);
  options.alpha_regularizer = config.take_or("alpha_regularizer", options.alpha_regularizer);
  options.alpha_constraint = config.take_or("alpha_constraint", options.alpha_constraint);
  options.shared_axes = config.take_or<std::vector<int64_t>>("shared_axes", {});
  options.name = base.name;
  options.dtype = base.dtype;
  options.trainable = base.trainable;
  return PReLU(options);
}

}  // namespace tessera
