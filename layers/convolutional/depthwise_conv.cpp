#include <tessera/layers/convolutional/depthwise_conv.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/conv.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {
namespace {

LayerHandle depthwise_from(JsonObject& config, int64_t spatial) {
  auto options = shared_options<DepthwiseConvOptions>(take_conv_options(config));
  take_kernel_options(config, "depthwise", options.depthwise_initializer,
                      options.depthwise_regularizer, options.depthwise_constraint);
  options.depth_multiplier = config.take_or("depth_multiplier", options.depth_multiplier);
  return make_layer<DepthwiseConvLayer>(spatial, take_axis_values(config, "kernel_size", 0),
                                        options);
}

}  // namespace

DTensor depthwise_conv(const DTensor& x, const DTensor& kernel,
                       const std::vector<WindowAxis>& axes) {
  // Every channel is a group of one.
  const auto spatial = static_cast<int64_t>(axes.size());
  const DTensor y = ops::conv(ops::expand_dims(x, x.rank()), ops::expand_dims(kernel, spatial),
                              axes);
  return ops::flatten(y, spatial + 1);
}

DepthwiseConvLayer::DepthwiseConvLayer(int64_t spatial, const AxisValues& kernel_size,
                                       const DepthwiseConvOptions& options)
    : ConvBase(str("DepthwiseConv", spatial, "D"), spatial, kernel_size,
               shared_options<ConvOptions>(options)),
      own_(options) {
  check_positive(options.depth_multiplier, "depth_multiplier");
  if (!options.kernel_layout.empty()) set_weight_layout("kernel", options.kernel_layout);
}

Json DepthwiseConvLayer::config() const {
  Json json = ConvBase::config();
  json["depth_multiplier"] = own_.depth_multiplier;
  put_kernel_options(json, "depthwise", own_.depthwise_initializer, own_.depthwise_regularizer,
                     own_.depthwise_constraint);
  return json;
}

Shape DepthwiseConvLayer::image_shape(const Shape& x) const {
  return shape_of(x[0], outputs(x, windows(x)), channels_of(x) * own_.depth_multiplier);
}

void DepthwiseConvLayer::make_weights(const Shapes& inputs) {
  const int64_t channels = channels_last_shape(inputs).back();
  kernel_ = add_weight("kernel", kernel_shape({channels, own_.depth_multiplier}),
                       own_.depthwise_initializer,
                       {.regularizer = own_.depthwise_regularizer,
                        .constraint = own_.depthwise_constraint});
  add_bias(channels * own_.depth_multiplier);
}

DTensor DepthwiseConvLayer::transform(const DTensor& x, const CallContext&) {
  return with_bias(depthwise_conv(x, read(kernel_), windows(x.shape())));
}

LayerHandle DepthwiseConv1D::from_config(JsonObject& config) { return depthwise_from(config, 1); }
LayerHandle DepthwiseConv2D::from_config(JsonObject& config) { return depthwise_from(config, 2); }

}  // namespace tessera
