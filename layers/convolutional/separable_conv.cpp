#include <tessera/layers/convolutional/conv.hpp>

#include <tessera/framework/ops/conv.hpp>
#include <tessera/layers/internal/conv_base.hpp>

namespace tessera {

using namespace detail;

namespace {

struct SeparableConvArguments : SeparableConvOptions {
  int64_t filters = 0;
  AxisValues kernel_size = 0;
};

template <class Visit>
void fields(SeparableConvArguments& a, const Visit& visit) {
  conv_fields(a, visit);
  visit("filters", a.filters);
  visit("depth_multiplier", a.depth_multiplier);
  visit("depthwise_initializer", a.depthwise_initializer);
  visit("depthwise_regularizer", a.depthwise_regularizer);
  visit("depthwise_constraint", a.depthwise_constraint);
  visit("pointwise_initializer", a.pointwise_initializer);
  visit("pointwise_regularizer", a.pointwise_regularizer);
  visit("pointwise_constraint", a.pointwise_constraint);
}

class SeparableConvLayer final : public ConvBase<SeparableConvArguments> {
 public:
  SeparableConvLayer(int64_t spatial, const SeparableConvArguments& arguments);

 protected:
  Shape image_shape(const Shape& x) const override;
  void make_weights(const Shapes& inputs) override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  Variable depthwise_, pointwise_;
};

template <int64_t spatial>
LayerHandle separable_conv_from(JsonObject& config) {
  auto arguments = layer_options_from<SeparableConvArguments>(config);
  arguments.filters = take_extent(config, "filters");
  return make_layer<SeparableConvLayer>(spatial, arguments);
}

const RegisteredLayer registered_separable_conv1d("SeparableConv1D", separable_conv_from<1>);
const RegisteredLayer registered_separable_conv2d("SeparableConv2D", separable_conv_from<2>);

SeparableConvLayer::SeparableConvLayer(int64_t spatial, const SeparableConvArguments& arguments)
    : ConvBase(str("SeparableConv", spatial, "D"), spatial, arguments) {
  check_positive(arguments.filters, "filters");
  check_positive(arguments.depth_multiplier, "depth_multiplier");
  if (!arguments.depthwise_layout.empty()) {
    set_weight_layout("depthwise_kernel", arguments.depthwise_layout);
  }
  if (!arguments.pointwise_layout.empty()) {
    set_weight_layout("pointwise_kernel", arguments.pointwise_layout);
  }
}

Shape SeparableConvLayer::image_shape(const Shape& x) const {
  channels_of(x);
  return shape_of(x[0], outputs(x, windows(x)), arguments_.filters);
}

void SeparableConvLayer::make_weights(const Shapes& inputs) {
  const int64_t channels = channels_last_shape(inputs).back();
  depthwise_ = add_weight("depthwise_kernel", kernel_shape({channels, arguments_.depth_multiplier}),
                          arguments_.depthwise_initializer,
                          {.regularizer = arguments_.depthwise_regularizer,
                           .constraint = arguments_.depthwise_constraint});
  Shape mixing(size_t(spatial()), 1);
  mixing.insert(mixing.end(), {channels * arguments_.depth_multiplier, arguments_.filters});
  pointwise_ = add_weight("pointwise_kernel", mixing, arguments_.pointwise_initializer,
                          {.regularizer = arguments_.pointwise_regularizer,
                           .constraint = arguments_.pointwise_constraint});
  add_bias(arguments_.filters);
}

DTensor SeparableConvLayer::transform(const DTensor& x, const CallContext&) {
  return with_bias(ops::separable_conv(x, read(depthwise_), read(pointwise_), windows(x.shape())));
}

LayerHandle separable_conv_of(int64_t spatial, int64_t filters, const AxisValues& kernel_size,
                              const SeparableConvOptions& options) {
  return make_layer<SeparableConvLayer>(spatial,
                                        SeparableConvArguments{options, filters, kernel_size});
}

}  // namespace

SeparableConv1D::SeparableConv1D(int64_t filters, const AxisValues& kernel_size,
                                 const SeparableConvOptions& options)
    : LayerHandle(separable_conv_of(1, filters, kernel_size, options)) {}
SeparableConv2D::SeparableConv2D(int64_t filters, const AxisValues& kernel_size,
                                 const SeparableConvOptions& options)
    : LayerHandle(separable_conv_of(2, filters, kernel_size, options)) {}

}  // namespace tessera
