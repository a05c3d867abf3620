#include <tessera/layers/preprocessing/rescaling.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {
namespace {

bool fits(const Shape& numbers, const Shape& input) {
  if (numbers.size() > input.size()) return false;
  const size_t first = input.size() - numbers.size();
  for (size_t a = 0; a < numbers.size(); ++a) {
    const int64_t extent = input[first + a];
    if (numbers[a] != 1 && extent != -1 && numbers[a] != extent) return false;
  }
  return true;
}

DTensor constant(const ArrayOption& numbers, const DTensor& like) {
  const auto rank = static_cast<int64_t>(numbers.shape().size());
  return pack(numbers.tensor().to(like.dtype()), Layout::replicated(like.mesh(), rank));
}

}  // namespace

RescalingLayer::RescalingLayer(const ArrayOption& scale, const RescalingOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), scale_(scale),
      offset_(options.offset) {
  if (scale_.defined() && offset_.defined()) return;
  throw ConfigError("Rescaling " + options.name, "scale and offset are numbers", "none",
                    "give 1 and 0 to leave x as it is");
}

Json RescalingLayer::config() const {
  Json json = Layer::config();
  json["scale"] = scale_.json();
  json["offset"] = offset_.json();
  return json;
}

Shape RescalingLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  for (const ArrayOption* numbers : {&scale_, &offset_}) {
    if (fits(numbers->shape(), input)) continue;
    throw ShapeError("Rescaling " + path(),
                     str(numbers == &scale_ ? "scale " : "offset ", to_string(numbers->shape()),
                         " broadcasts to the input"),
                     to_string(input), "give one number, or one for each of the last axis");
  }
  return input;
}

DTensor RescalingLayer::call(const Inputs& inputs, const CallContext&) {
  const at::ScalarType dtype = dtype_policy().compute;
  DTensor x = inputs[0].dtype() == dtype ? inputs[0] : ops::cast(inputs[0], dtype);
  x = scale_.shape().empty() ? x * scale_.tensor().item<double>() : x * constant(scale_, x);
  return offset_.shape().empty() ? x + offset_.tensor().item<double>() : x + constant(offset_, x);
}

Rescaling Rescaling::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  const auto scale = config.take<ArrayOption>("scale");
  return Rescaling(scale, {.offset = config.take_or<ArrayOption>("offset", 0.0),
                           .name = options.name,
                           .dtype = options.dtype,
                           .trainable = options.trainable});
}

}  // namespace tessera
