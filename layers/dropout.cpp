#include <tessera/layers/dropout.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

DropoutLayer::DropoutLayer(double rate, const DropoutOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), rate_(rate),
      noise_shape_(options.noise_shape), seed_(options.seed) {
  if (!(rate >= 0 && rate < 1)) {
    throw ConfigError("Dropout " + options.name, "rate lies in [0, 1)", str(rate),
                      "give the share of elements to drop");
  }
  for (const int64_t extent : noise_shape_) {
    if (extent > 0 || extent == -1) continue;
    throw ConfigError("Dropout " + options.name, "noise_shape holds -1 and extents from 1 on",
                      to_string(noise_shape_), "give 1 where all indices share a choice");
  }
}

Json DropoutLayer::config() const {
  Json json = Layer::config();
  json["rate"] = rate_;
  json["seed"] = seed_ ? Json(*seed_) : Json(nullptr);
  json["noise_shape"] = nullptr;
  for (const int64_t extent : noise_shape_) {
    json["noise_shape"].push_back(extent == -1 ? Json(nullptr) : Json(extent));
  }
  return json;
}

Shape DropoutLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = only(inputs);
  bool fits = noise_shape_.empty() || noise_shape_.size() == input.size();
  for (size_t a = 0; fits && a < noise_shape_.size(); ++a) {
    const int64_t extent = noise_shape_[a];
    fits = extent == -1 || extent == 1 || input[a] == -1 || extent == input[a];
  }
  if (fits) return input;
  throw ShapeError("Dropout " + path(),
                   str("noise_shape ", to_string(noise_shape_), " broadcasts to the input"),
                   to_string(input), "give -1, 1 or the extent for each axis");
}

DTensor DropoutLayer::call(const Inputs& inputs, const CallContext& context) {
  if (!context.training || rate_ == 0) return inputs[0];
  const DTensor& x = inputs[0];
  const DTensor input =
      context.random ? context.random->next_input(path(), x.mesh(), seed_)
                     : ops::seed_input(seed_ ? fold_in({}, static_cast<uint64_t>(*seed_)) : Seed{},
                                       x.mesh());
  if (noise_shape_.empty()) return ops::dropout(x, rate_, input);
  Shape shape = noise_shape_;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (shape[a] == -1) shape[a] = x.shape()[a];
  }
  const DTensor ones = filled(shape, 1, x.dtype(), Layout::replicated(x.mesh(), x.rank()));
  return x * ops::dropout(ones, rate_, input);
}

Dropout Dropout::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  const auto rate = config.take<double>("rate");
  Shape noise_shape;
  for (const auto& extent :
       config.take_or<std::vector<std::optional<int64_t>>>("noise_shape", {})) {
    noise_shape.push_back(extent.value_or(-1));
  }
  return Dropout(rate, {.noise_shape = noise_shape,
                        .seed = config.take_optional<int64_t>("seed"),
                        .name = options.name,
                        .dtype = options.dtype,
                        .trainable = options.trainable});
}

}  // namespace tessera
