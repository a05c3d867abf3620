#include <tessera/layers/convolutional/conv.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/conv.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/conv_base.hpp>

namespace tessera {

using namespace detail;

namespace {

struct ConvArguments : ConvOptions {
  int64_t filters = 0;
  AxisValues kernel_size = 0;
};

template <class Visit>
void fields(ConvArguments& a, const Visit& visit) {
  conv_fields(a, visit);
  visit("filters", a.filters);
  visit("groups", a.groups);
  visit("kernel_initializer", a.kernel_initializer);
  visit("kernel_regularizer", a.kernel_regularizer);
  visit("kernel_constraint", a.kernel_constraint);
}

class ConvLayer final : public ConvBase<ConvArguments> {
 public:
  ConvLayer(int64_t spatial, const ConvArguments& arguments);

 protected:
  Shape image_shape(const Shape& x) const override;
  void make_weights(const Shapes& inputs) override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  Variable kernel_;
};

template <int64_t spatial>
LayerHandle conv_from(JsonObject& config) {
  auto arguments = layer_options_from<ConvArguments>(config);
  arguments.filters = take_extent(config, "filters");
  take_nulls(config, {"lora_rank", "lora_alpha", "quantization_config"});
  return make_layer<ConvLayer>(spatial, arguments);
}

const RegisteredLayer registered_conv1d("Conv1D", conv_from<1>);
const RegisteredLayer registered_conv2d("Conv2D", conv_from<2>);
const RegisteredLayer registered_conv3d("Conv3D", conv_from<3>);

ConvLayer::ConvLayer(int64_t spatial, const ConvArguments& arguments)
    : ConvBase(str("Conv", spatial, "D"), spatial, arguments) {
  check_positive(arguments.filters, "filters");
  check_positive(arguments.groups, "groups");
  if (arguments.filters % arguments.groups != 0) {
    throw ConfigError(class_name() + " " + name(), "filters is a multiple of groups",
                      str(arguments.filters, " filters in ", arguments.groups, " groups"),
                      "change one of them");
  }
  if (!arguments.kernel_layout.empty()) set_weight_layout("kernel", arguments.kernel_layout);
}

Shape ConvLayer::image_shape(const Shape& x) const {
  const int64_t channels = channels_of(x);
  if (channels % arguments_.groups != 0) {
    throw ShapeError(where(),
                     str("the number of channels is a multiple of groups ", arguments_.groups),
                     to_string(x), "change groups");
  }
  return shape_of(x[0], outputs(x, windows(x)), arguments_.filters);
}

void ConvLayer::make_weights(const Shapes& inputs) {
  const int64_t channels = channels_last_shape(inputs).back();
  kernel_ = add_weight("kernel", kernel_shape({channels / arguments_.groups, arguments_.filters}),
                       arguments_.kernel_initializer,
                       {.regularizer = arguments_.kernel_regularizer,
                        .constraint = arguments_.kernel_constraint,
                        .memory_order = ops::conv_kernel_order(spatial())});
  add_bias(arguments_.filters);
}

DTensor ConvLayer::transform(const DTensor& x, const CallContext&) {
  const std::vector<WindowAxis> axes = windows(x.shape());
  const DTensor kernel = read(kernel_);
  const int64_t groups = arguments_.groups;
  if (groups == 1) return with_bias(ops::conv(x, kernel, axes));
  // Gives groups their own axis, so that they may be sharded.
  Shape grouped_shape = x.shape();
  grouped_shape.back() = groups;
  grouped_shape.push_back(x.shape().back() / groups);
  const int64_t each = arguments_.filters / groups;
  const DTensor y =
      ops::conv(ops::reshape(x, grouped_shape),
                ops::reshape(kernel, kernel_shape({grouped_shape.back(), groups, each})), axes);
  return with_bias(ops::flatten(y, spatial() + 1));
}

LayerHandle conv_of(int64_t spatial, int64_t filters, const AxisValues& kernel_size,
                    const ConvOptions& options) {
  return make_layer<ConvLayer>(spatial, ConvArguments{options, filters, kernel_size});
}

}  // namespace

Conv1D::Conv1D(int64_t filters, const AxisValues& kernel_size, const ConvOptions& options)
    : LayerHandle(conv_of(1, filters, kernel_size, options)) {}
Conv2D::Conv2D(int64_t filters, const AxisValues& kernel_size, const ConvOptions& options)
    : LayerHandle(conv_of(2, filters, kernel_size, options)) {}
Conv3D::Conv3D(int64_t filters, const AxisValues& kernel_size, const ConvOptions& options)
    : LayerHandle(conv_of(3, filters, kernel_size, options)) {}

}  // namespace tessera
