#include <tessera/layers/internal/spatial_layer.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::detail {
namespace {

/// Returns the axis order from (n, c, spatial…) to channels last.
std::vector<int64_t> order_to_last(int64_t spatial) {
  std::vector<int64_t> order = {0};
  for (int64_t i = 0; i < spatial; ++i) order.push_back(i + 2);
  order.push_back(1);
  return order;
}

/// Returns the axis order from (n, spatial…, c) to channels first.
std::vector<int64_t> order_to_first(int64_t spatial) {
  std::vector<int64_t> order = {0, spatial + 1};
  for (int64_t i = 0; i < spatial; ++i) order.push_back(i + 1);
  return order;
}

Shape ordered(const Shape& shape, const std::vector<int64_t>& order) {
  Shape transposed;
  for (int64_t a : order) transposed.push_back(shape[size_t(a)]);
  return transposed;
}

}  // namespace

}  // namespace tessera::detail

namespace tessera {

void json_get(const Json& json, const detail::JsonPath& path, AxisValues& out) {
  if (json.is_array()) {
    out = detail::json_as<std::vector<int64_t>>(json, path);
  } else {
    out = detail::json_as<int64_t>(json, path);
  }
}

}  // namespace tessera

namespace tessera::detail {

SpatialLayer::SpatialLayer(const LayerOptions& options, const std::string& class_name,
                           int64_t spatial, const std::string& data_format)
    : ReplayedLayer(options),
      class_name_(class_name),
      spatial_(spatial),
      channels_first_(data_format == "channels_first") {
  if (channels_first_ || data_format.empty() || data_format == "channels_last") return;
  throw ConfigError(class_name + " " + options.name,
                    "data_format is \"channels_last\" or \"channels_first\"",
                    in_quotes(data_format), "leave it out for channels last");
}

Shape SpatialLayer::channels_last_shape(const Shapes& inputs) const {
  const Shape& x = single_input(inputs);
  if (static_cast<int64_t>(x.size()) != spatial_ + 2) {
    std::string axes = channels_first_ ? "(batch, channels" : "(batch";
    for (int64_t i = 0; i < spatial_; ++i) {
      axes += spatial_ == 1 ? ", steps" : spatial_ == 2 ? i ? ", width" : ", height" : ", extent";
    }
    axes += channels_first_ ? ")" : ", channels)";
    throw ShapeError(where(), "the input is " + axes, to_string(x), "expand or reshape it first");
  }
  return channels_first_ ? ordered(x, order_to_last(spatial_)) : x;
}

int64_t SpatialLayer::channels_of(const Shape& x) const {
  const int64_t channels = x.back();
  if (channels < 1) {
    throw ShapeError(where(), "the input has a known number of channels", to_string(x),
                     "give it in Input()");
  }
  if (built() && !built_for().empty()) {
    const int64_t expected = channels_last_shape(built_for()).back();
    if (channels != expected) {
      throw ShapeError(where(), str("the input has ", expected, " channels, as when built"),
                       to_string(x), "pass inputs of that size");
    }
  }
  return channels;
}

Shape SpatialLayer::output_shape(const Shapes& inputs) const {
  Shape y = image_shape(channels_last_shape(inputs));
  // Global pooling drops the spatial axes.
  const bool transposed = channels_first_ && static_cast<int64_t>(y.size()) == spatial_ + 2;
  return epilogue_shape(transposed ? ordered(y, order_to_first(spatial_)) : y);
}

DTensor SpatialLayer::to_channels_last(const DTensor& x) const {
  return channels_first_ ? ops::transpose(x, order_to_last(spatial_)) : x;
}

DTensor SpatialLayer::to_data_format(const DTensor& y) const {
  return channels_first_ ? ops::transpose(y, order_to_first(spatial_)) : y;
}

DTensor SpatialLayer::call(const Inputs& inputs, const CallContext& context) {
  if (!channels_first_) return epilogue(transform(inputs[0], context));
  const DTensor x = to_channels_last(inputs[0]);
  const DTensor y = transform(x.with_mask(inputs[0].mask()), context);
  return epilogue(y.rank() == spatial_ + 2 ? to_data_format(y) : y);
}

std::vector<int64_t> SpatialLayer::each(const AxisValues& values, const std::string& argument,
                                        int64_t minimum) const {
  std::vector<int64_t> all = values.values;
  if (all.size() == 1) all.resize(size_t(spatial_), all[0]);
  const bool valid = std::all_of(all.begin(), all.end(), [&](int64_t v) {
    return v >= minimum && v <= std::numeric_limits<int32_t>::max();
  });
  if (valid && static_cast<int64_t>(all.size()) == spatial_) return all;
  throw ConfigError(
      class_name_ + " " + name(),
      str(argument, " is one integer of at least ", minimum, ", or ", spatial_, " of them"),
      to_string(Shape(values.values)), "give one integer, or one per spatial axis");
}

void SpatialLayer::check_positive(int64_t value, const std::string& argument) const {
  if (value >= 1) return;
  throw ConfigError(class_name_ + " " + name(), argument + " is at least 1", str(value),
                    "give an integer from 1 on");
}

void SpatialLayer::check_padding(const std::string& padding,
                                 const std::vector<std::string>& known) const {
  if (std::find(known.begin(), known.end(), padding) != known.end()) return;
  throw ConfigError(class_name_ + " " + name(), "padding is one of " + quoted_list(known),
                    in_quotes(padding), suggestion(padding, known));
}

std::vector<WindowAxis> SpatialLayer::windows(const Shape& x, const std::vector<int64_t>& sizes,
                                              const std::vector<int64_t>& strides,
                                              const std::vector<int64_t>& dilations,
                                              const std::string& padding) const {
  std::vector<WindowAxis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    WindowAxis axis{.size = sizes[i], .stride = strides[i], .dilation = dilations[i]};
    const int64_t n = x[i + 1];
    if (padding == "causal") axis.before = axis.reach() - 1;
    if (padding == "same" && n >= 0) {
      const int64_t last = (std::max<int64_t>(n, 1) - 1) / axis.stride * axis.stride;
      const int64_t total = std::max<int64_t>(0, last + axis.reach() - n);
      axis.before = total / 2;
      axis.after = total - axis.before;
    }
    if (n >= 0 && axis.outputs(n) < 1) {
      throw ShapeError(where(), str("a window of ", axis.reach(), " fits into spatial axis ", i),
                       str(n, " elements in ", to_string(x)),
                       "use a smaller window, or padding \"same\"");
    }
    axes.push_back(axis);
  }
  return axes;
}

int64_t SpatialLayer::times(int64_t extent, int64_t factor) const {
  int64_t product = 0;
  constexpr int64_t limit = int64_t{1} << 62;
  if (!__builtin_mul_overflow(extent, factor, &product) && product < limit) return product;
  throw ShapeError(where(), "spatial axes of fewer than 2^62 elements",
                   str(factor, " times ", extent), "use a smaller size");
}

std::vector<int64_t> SpatialLayer::outputs(const Shape& x, const std::vector<WindowAxis>& axes) {
  std::vector<int64_t> list;
  for (size_t i = 0; i < axes.size(); ++i) {
    list.push_back(x[i + 1] < 0 ? -1 : axes[i].outputs(x[i + 1]));
  }
  return list;
}

Shape SpatialLayer::shape_of(int64_t batch, const std::vector<int64_t>& extents, int64_t channels) {
  Shape shape = {batch};
  shape.insert(shape.end(), extents.begin(), extents.end());
  shape.push_back(channels);
  return shape;
}

}  // namespace tessera::detail
