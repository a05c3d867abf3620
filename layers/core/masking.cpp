#include <tessera/layers/core/masking.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

Json MaskingLayer::config() const {
  Json json = Layer::config();
  json["mask_value"] = mask_value_;
  return json;
}

Shape MaskingLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (input.size() > 1) return input;
  throw ShapeError("Masking " + path(), "the input has features after the batch axis",
                   to_string(input), "expand it first");
}

DTensor MaskingLayer::call(const Inputs& inputs, const CallContext&) {
  const DTensor& x = inputs[0];
  const DTensor value = scalar(mask_value_, x.mesh(), x.dtype());
  const DTensor counts = ops::any(ops::not_equal(x, value), {-1}, true);
  const DTensor y = ops::where(counts, x, scalar(0, x.mesh(), x.dtype()));
  return y.with_mask(ops::squeeze(counts, {-1}));
}

Masking Masking::from_config(JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  return Masking({.mask_value = config.take_or("mask_value", 0.0),
                  .name = options.name,
                  .dtype = options.dtype,
                  .trainable = options.trainable});
}

}  // namespace tessera
