#include <tessera/layers/convolutional/conv.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/conv.hpp>
#include <tessera/layers/internal/conv_base.hpp>

namespace tessera {

using namespace detail;

namespace {

struct ConvTransposeArguments : ConvTransposeOptions {
  int64_t filters = 0;
  AxisValues kernel_size = 0;
};

template <class Visit>
void fields(ConvTransposeArguments& a, const Visit& visit) {
  conv_fields(a, visit);
  visit("filters", a.filters);
  visit("output_padding", a.output_padding);
  visit("kernel_initializer", a.kernel_initializer);
  visit("kernel_regularizer", a.kernel_regularizer);
  visit("kernel_constraint", a.kernel_constraint);
}

class ConvTransposeLayer final : public ConvBase<ConvTransposeArguments> {
 public:
  ConvTransposeLayer(int64_t spatial, const ConvTransposeArguments& arguments);

 protected:
  Shape image_shape(const Shape& x) const override;
  void make_weights(const Shapes& inputs) override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  /// Returns the output's extents; appends the windows of the convolution that maps the output to x
  /// to `axes`.
  std::vector<int64_t> extents(const Shape& x, std::vector<WindowAxis>& axes) const;

  Variable kernel_;
};

template <int64_t spatial>
LayerHandle conv_transpose_from(JsonObject& config) {
  auto arguments = layer_options_from<ConvTransposeArguments>(config);
  arguments.filters = take_extent(config, "filters");
  return make_layer<ConvTransposeLayer>(spatial, arguments);
}

const RegisteredLayer registered_conv1d_transpose("Conv1DTranspose", conv_transpose_from<1>);
const RegisteredLayer registered_conv2d_transpose("Conv2DTranspose", conv_transpose_from<2>);
const RegisteredLayer registered_conv3d_transpose("Conv3DTranspose", conv_transpose_from<3>);

ConvTransposeLayer::ConvTransposeLayer(int64_t spatial, const ConvTransposeArguments& arguments)
    : ConvBase(str("Conv", spatial, "DTranspose"), spatial, arguments) {
  check_positive(arguments.filters, "filters");
  if (!arguments.kernel_layout.empty()) set_weight_layout("kernel", arguments.kernel_layout);
  if (!arguments.output_padding) return;
  const std::vector<int64_t> pads = each(*arguments.output_padding, "output_padding", 0);
  arguments_.output_padding = pads;
  for (size_t i = 0; i < strides().size(); ++i) {
    if (pads[i] < strides()[i]) continue;
    throw ConfigError(class_name() + " " + name(), "output_padding is below the stride",
                      str(pads[i], " with a stride of ", strides()[i]),
                      "leave it out for the largest output");
  }
}

std::vector<int64_t> ConvTransposeLayer::extents(const Shape& x,
                                                 std::vector<WindowAxis>& axes) const {
  const bool same = arguments_.padding == "same";
  std::vector<int64_t> list;
  for (size_t i = 0; i < strides().size(); ++i) {
    WindowAxis axis{
        .size = kernel_size()[i], .stride = strides()[i], .dilation = dilation_rate()[i]};
    const int64_t n = x[i + 1];
    if (n < 0) {
      list.push_back(-1);
      axes.push_back(axis);
      continue;
    }
    const int64_t all = times(n, axis.stride), full_extent = all - axis.stride + axis.reach();
    int64_t extent = same ? all : std::max(full_extent, all);
    if (arguments_.output_padding) {
      const int64_t pads = arguments_.output_padding->values[i];
      extent = full_extent + pads - (same ? axis.reach() / 2 * 2 : 0);
    }
    const int64_t total = same ? std::max<int64_t>(0, full_extent - extent) : 0;
    axis.before = total / 2;
    axis.after = total - axis.before;
    if (extent < 1 || axis.outputs(extent) != n) {
      throw ShapeError(where(), "output_padding fits the window and the stride",
                       str("spatial axis ", i, " of ", n, " would become ", extent),
                       "leave output_padding out");
    }
    list.push_back(extent);
    axes.push_back(axis);
  }
  return list;
}

Shape ConvTransposeLayer::image_shape(const Shape& x) const {
  channels_of(x);
  std::vector<WindowAxis> axes;
  return shape_of(x[0], extents(x, axes), arguments_.filters);
}

void ConvTransposeLayer::make_weights(const Shapes& inputs) {
  const int64_t channels = channels_last_shape(inputs).back();
  kernel_ = add_weight("kernel", kernel_shape({arguments_.filters, channels}),
                       arguments_.kernel_initializer,
                       {.regularizer = arguments_.kernel_regularizer,
                        .constraint = arguments_.kernel_constraint,
                        .memory_order = ops::conv_kernel_order(spatial())});
  add_bias(arguments_.filters);
}

DTensor ConvTransposeLayer::transform(const DTensor& x, const CallContext&) {
  std::vector<WindowAxis> axes;
  const std::vector<int64_t> output_extents = extents(x.shape(), axes);
  return with_bias(ops::conv_transpose(x, read(kernel_), axes, output_extents));
}

LayerHandle conv_transpose_of(int64_t spatial, int64_t filters, const AxisValues& kernel_size,
                              const ConvTransposeOptions& options) {
  return make_layer<ConvTransposeLayer>(spatial,
                                        ConvTransposeArguments{options, filters, kernel_size});
}

}  // namespace

Conv1DTranspose::Conv1DTranspose(int64_t filters, const AxisValues& kernel_size,
                                 const ConvTransposeOptions& options)
    : LayerHandle(conv_transpose_of(1, filters, kernel_size, options)) {}
Conv2DTranspose::Conv2DTranspose(int64_t filters, const AxisValues& kernel_size,
                                 const ConvTransposeOptions& options)
    : LayerHandle(conv_transpose_of(2, filters, kernel_size, options)) {}
Conv3DTranspose::Conv3DTranspose(int64_t filters, const AxisValues& kernel_size,
                                 const ConvTransposeOptions& options)
    : LayerHandle(conv_transpose_of(3, filters, kernel_size, options)) {}

}  // namespace tessera
