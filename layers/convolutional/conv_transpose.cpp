#include <tessera/layers/convolutional/conv_transpose.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/conv.hpp>

namespace tessera {
namespace {

LayerHandle transpose_from(JsonObject& config, int64_t spatial) {
  auto options = shared_options<ConvTransposeOptions>(take_conv_options(config));
  take_kernel_options(config, "kernel", options.kernel_initializer, options.kernel_regularizer,
                      options.kernel_constraint);
  const AxisValues none = std::vector<int64_t>();
  const AxisValues padding = take_axis_values(config, "output_padding", none);
  if (!padding.values.empty()) options.output_padding = padding;
  const AxisValues size = take_axis_values(config, "kernel_size", 0);
  return make_layer<ConvTransposeLayer>(spatial, take_extent(config, "filters"), size, options);
}

}  // namespace

ConvTransposeLayer::ConvTransposeLayer(int64_t spatial, int64_t filters,
                                       const AxisValues& kernel_size,
                                       const ConvTransposeOptions& options)
    : ConvBase(str("Conv", spatial, "DTranspose"), spatial, kernel_size,
               shared_options<ConvOptions>(options)),
      filters_(filters), own_(options) {
  check_positive(filters, "filters");
  if (!options.kernel_layout.empty()) set_weight_layout("kernel", options.kernel_layout);
  if (!options.output_padding) return;
  output_padding_ = each(*options.output_padding, "output_padding", 0);
  for (size_t i = 0; i < strides().size(); ++i) {
    if ((*output_padding_)[i] < strides()[i]) continue;
    throw ConfigError(class_name() + " " + name(), "output_padding is below the stride",
                      str((*output_padding_)[i], " with a stride of ", strides()[i]),
                      "leave it out for the largest output");
  }
}

Json ConvTransposeLayer::config() const {
  Json json = ConvBase::config();
  json["filters"] = filters_;
  json["output_padding"] = output_padding_ ? Json(*output_padding_) : Json(nullptr);
  put_kernel_options(json, "kernel", own_.kernel_initializer, own_.kernel_regularizer,
                     own_.kernel_constraint);
  return json;
}

std::vector<int64_t> ConvTransposeLayer::extents(const Shape& x,
                                                 std::vector<WindowAxis>& axes) const {
  const bool same = options().padding == "same";
  std::vector<int64_t> list;
  for (size_t i = 0; i < strides().size(); ++i) {
    WindowAxis axis{.size = kernel_size()[i], .stride = strides()[i],
                    .dilation = dilation_rate()[i]};
    const int64_t n = x[i + 1], spread = (n - 1) * axis.stride + axis.reach();
    if (n < 0) {
      list.push_back(-1);
      axes.push_back(axis);
      continue;
    }
    int64_t extent = same ? n * axis.stride : std::max(spread, n * axis.stride);
    if (output_padding_) {
      extent = spread + (*output_padding_)[i] - (same ? axis.reach() / 2 * 2 : 0);
    }
    const int64_t total = same ? std::max<int64_t>(0, spread - extent) : 0;
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
  return shape_of(x[0], extents(x, axes), filters_);
}

void ConvTransposeLayer::make_weights(const Shapes& inputs) {
  kernel_ = add_weight("kernel", kernel_shape({filters_, channels_last_shape(inputs).back()}),
                       own_.kernel_initializer,
                       {.regularizer = own_.kernel_regularizer,
                        .constraint = own_.kernel_constraint});
  add_bias(filters_);
}

DTensor ConvTransposeLayer::transform(const DTensor& x, const CallContext&) {
  std::vector<WindowAxis> axes;
  const std::vector<int64_t> made = extents(x.shape(), axes);
  return with_bias(ops::conv_transpose(x, read(kernel_), axes, made));
}

LayerHandle Conv1DTranspose::from_config(JsonObject& config) { return transpose_from(config, 1); }
LayerHandle Conv2DTranspose::from_config(JsonObject& config) { return transpose_from(config, 2); }

}  // namespace tessera
