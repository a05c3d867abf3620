#include <tessera/layers/convolutional/separable_conv.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/conv.hpp>
#include <tessera/layers/convolutional/depthwise_conv.hpp>

namespace tessera {
namespace {

LayerHandle separable_from(JsonObject& config, int64_t spatial) {
  auto options = shared_options<SeparableConvOptions>(take_conv_options(config));
  take_kernel_options(config, "depthwise", options.depthwise_initializer,
                      options.depthwise_regularizer, options.depthwise_constraint);
  take_kernel_options(config, "pointwise", options.pointwise_initializer,
                      options.pointwise_regularizer, options.pointwise_constraint);
  options.depth_multiplier = config.take_or("depth_multiplier", options.depth_multiplier);
  const AxisValues size = take_axis_values(config, "kernel_size", 0);
  return make_layer<SeparableConvLayer>(spatial, take_extent(config, "filters"), size, options);
}

}  // namespace

SeparableConvLayer::SeparableConvLayer(int64_t spatial, int64_t filters,
                                       const AxisValues& kernel_size,
                                       const SeparableConvOptions& options)
    : ConvBase(str("SeparableConv", spatial, "D"), spatial, kernel_size,
               shared_options<ConvOptions>(options)),
      filters_(filters), own_(options) {
  check_positive(filters, "filters");
  check_positive(options.depth_multiplier, "depth_multiplier");
  if (!options.depthwise_layout.empty()) {
    set_weight_layout("depthwise_kernel", options.depthwise_layout);
  }
  if (!options.pointwise_layout.empty()) {
    set_weight_layout("pointwise_kernel", options.pointwise_layout);
  }
}

Json SeparableConvLayer::config() const {
  Json json = ConvBase::config();
  json["filters"] = filters_;
  json["depth_multiplier"] = own_.depth_multiplier;
  put_kernel_options(json, "depthwise", own_.depthwise_initializer, own_.depthwise_regularizer,
                     own_.depthwise_constraint);
  put_kernel_options(json, "pointwise", own_.pointwise_initializer, own_.pointwise_regularizer,
                     own_.pointwise_constraint);
  return json;
}

Shape SeparableConvLayer::image_shape(const Shape& x) const {
  channels_of(x);
  return shape_of(x[0], outputs(x, windows(x)), filters_);
}

void SeparableConvLayer::make_weights(const Shapes& inputs) {
  const int64_t channels = channels_last_shape(inputs).back();
  depthwise_ = add_weight("depthwise_kernel", kernel_shape({channels, own_.depth_multiplier}),
                          own_.depthwise_initializer,
                          {.regularizer = own_.depthwise_regularizer,
                           .constraint = own_.depthwise_constraint});
  Shape mixing(size_t(spatial()), 1);
  mixing.insert(mixing.end(), {channels * own_.depth_multiplier, filters_});
  pointwise_ = add_weight("pointwise_kernel", mixing, own_.pointwise_initializer,
                          {.regularizer = own_.pointwise_regularizer,
                           .constraint = own_.pointwise_constraint});
  add_bias(filters_);
}

DTensor SeparableConvLayer::transform(const DTensor& x, const CallContext&) {
  const DTensor alone = depthwise_conv(x, read(depthwise_), windows(x.shape()));
  return with_bias(ops::conv(alone, read(pointwise_), std::vector<WindowAxis>(size_t(spatial()))));
}

LayerHandle SeparableConv1D::from_config(JsonObject& config) { return separable_from(config, 1); }
LayerHandle SeparableConv2D::from_config(JsonObject& config) { return separable_from(config, 2); }

}  // namespace tessera
