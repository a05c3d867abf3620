#include <tessera/layers/convolutional/conv.hpp>

#include <tessera/framework/ops/conv.hpp>
#include <tessera/layers/internal/conv_base.hpp>

namespace tessera {

using namespace detail;

namespace {

struct DepthwiseConvArguments : DepthwiseConvOptions {
  AxisValues kernel_size = 0;
};

template <class Visit>
void fields(DepthwiseConvArguments& a, const Visit& visit) {
  conv_fields(a, visit);
  visit("depth_multiplier", a.depth_multiplier);
  visit("depthwise_initializer", a.depthwise_initializer);
  visit("depthwise_regularizer", a.depthwise_regularizer);
  visit("depthwise_constraint", a.depthwise_constraint);
}

class DepthwiseConvLayer final : public ConvBase<DepthwiseConvArguments> {
 public:
  DepthwiseConvLayer(int64_t spatial, const DepthwiseConvArguments& arguments);

 protected:
  Shape image_shape(const Shape& x) const override;
  void make_weights(const Shapes& inputs) override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  Variable kernel_;
};

template <int64_t spatial>
LayerHandle depthwise_conv_from(JsonObject& config) {
  return make_layer<DepthwiseConvLayer>(spatial,
                                        layer_options_from<DepthwiseConvArguments>(config));
}

const RegisteredLayer registered_depthwise_conv1d("DepthwiseConv1D", depthwise_conv_from<1>);
const RegisteredLayer registered_depthwise_conv2d("DepthwiseConv2D", depthwise_conv_from<2>);

DepthwiseConvLayer::DepthwiseConvLayer(int64_t spatial, const DepthwiseConvArguments& arguments)
    : ConvBase(str("DepthwiseConv", spatial, "D"), spatial, arguments) {
  check_positive(arguments.depth_multiplier, "depth_multiplier");
  if (!arguments.kernel_layout.empty()) set_weight_layout("kernel", arguments.kernel_layout);
}

Shape DepthwiseConvLayer::image_shape(const Shape& x) const {
  return shape_of(x[0], outputs(x, windows(x)), times(channels_of(x), arguments_.depth_multiplier));
}

void DepthwiseConvLayer::make_weights(const Shapes& inputs) {
  const int64_t channels = channels_last_shape(inputs).back();
  kernel_ = add_weight("kernel", kernel_shape({channels, arguments_.depth_multiplier}),
                       arguments_.depthwise_initializer,
                       {.regularizer = arguments_.depthwise_regularizer,
                        .constraint = arguments_.depthwise_constraint});
  add_bias(channels * arguments_.depth_multiplier);
}

DTensor DepthwiseConvLayer::transform(const DTensor& x, const CallContext&) {
  return with_bias(ops::depthwise_conv(x, read(kernel_), windows(x.shape())));
}

LayerHandle depthwise_conv_of(int64_t spatial, const AxisValues& kernel_size,
                              const DepthwiseConvOptions& options) {
  return make_layer<DepthwiseConvLayer>(spatial, DepthwiseConvArguments{options, kernel_size});
}

}  // namespace

DepthwiseConv1D::DepthwiseConv1D(const AxisValues& kernel_size, const DepthwiseConvOptions& options)
    : LayerHandle(depthwise_conv_of(1, kernel_size, options)) {}
DepthwiseConv2D::DepthwiseConv2D(const AxisValues& kernel_size, const DepthwiseConvOptions& options)
    : LayerHandle(depthwise_conv_of(2, kernel_size, options)) {}

}  // namespace tessera
