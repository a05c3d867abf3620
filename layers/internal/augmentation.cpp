#include <tessera/layers/internal/augmentation.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/data/internal/row_part_scope.hpp>
#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/noise.hpp>
#include <tessera/layers/preprocessing/internal/box_format.hpp>

namespace tessera::detail {

namespace {

/// Axis orders from (batch, channels, height, width) to channels last, and back.
const std::vector<int64_t> to_channels_last = {0, 2, 3, 1};
const std::vector<int64_t> to_channels_first = {0, 3, 1, 2};

Shape reordered(const Shape& shape, const std::vector<int64_t>& order) {
  Shape result;
  for (const int64_t axis : order) result.push_back(shape[static_cast<size_t>(axis)]);
  return result;
}

DTensor scaled_to(const DTensor& x, double lo, double hi) {
  return lo == 0 && hi == 1 ? x : x * (hi - lo) + lo;
}

}  // namespace

void json_get(const Json& json, const JsonPath& path, Factor& out) {
  if (json.is_number()) {
    out = Factor(json_as<double>(json, path));
  } else {
    out = Factor(json_as<std::vector<double>>(json, path));
  }
}

DTensor ImageDraws::each_of(int64_t i, int64_t count) const {
  return ops::slice(rows_, 1, begin_ + i, count);
}

DTensor ImageDraws::each(int64_t i, double lo, double hi) const {
  return scaled_to(each_of(i, 1), lo, hi);
}

DTensor ImageDraws::shared(int64_t i, double lo, double hi) const {
  return scaled_to(ops::slice(first_, 1, begin_ + i, 1), lo, hi);
}

DTensor ImageDraws::bernoulli(int64_t i, double probability) const {
  const DTensor u = each(i);
  return ops::cast(ops::less(u, constant_like(u, probability)), u.dtype());
}

DTensor ImageDraws::signs(int64_t i) const {
  const DTensor u = each(i);
  return ops::cast(ops::greater(u, constant_like(u, 0.5)), u.dtype()) * -2 + 1;
}

ImageDraws ImageDraws::from(int64_t i) const {
  ImageDraws rest = *this;
  rest.begin_ += i;
  return rest;
}

ImageDraws ImageDraws::of_first() const {
  ImageDraws first = *this;
  first.rows_ = first_;
  return first;
}

DTensor constant_like(const DTensor& x, double value) {
  return filled({}, value, x.dtype(), Layout::replicated(x.mesh(), 0));
}

DTensor as_images(const DTensor& column) {
  return ops::reshape(column, {column.shape()[0], 1, 1, 1});
}

DTensor for_images(const DTensor& column, const DTensor& images) {
  return ops::cast(as_images(column), images.dtype());
}

DTensor pixels_between(const DTensor& images, int64_t axis, const DTensor& start,
                       const DTensor& length) {
  Shape shape = {1, 1, 1, 1};
  shape[static_cast<size_t>(axis)] = images.shape()[static_cast<size_t>(axis)];
  const DTensor cells =
      pack(at::arange(numel(shape), at::kFloat).view(shape), Layout::replicated(images.mesh(), 4));
  const DTensor from = as_images(start), to = as_images(start + length);
  return ops::logical_and(ops::greater_equal(cells, from), ops::less(cells, to));
}

void AugmentationLayer::set_formats(const std::string& where, const std::string& data_format,
                                    const std::string& box_format) {
  channels_first_ = data_format == "channels_first";
  box_format_ = box_format;
  if (!box_format.empty()) detail::box_format(where, box_format);
  if (channels_first_ || data_format == "channels_last") return;
  throw ConfigError(where, "data_format is \"channels_last\" or \"channels_first\"",
                    in_quotes(data_format), "leave it out for \"channels_last\"");
}

Shapes AugmentationLayer::output_shapes(const Shapes& inputs) const {
  const bool counted = inputs.size() == 1 || (inputs.size() == 2 && takes_labels());
  if (!counted || inputs[0].size() != 4) {
    std::vector<std::string> shapes;
    for (const Shape& shape : inputs) shapes.push_back(to_string(shape));
    throw ShapeError(
        where(),
        str("the input is images of rank 4", takes_labels() ? ", optionally with labels" : ""),
        join(shapes, " and "),
        "give it batch, height, width and channels, as data_format orders them");
  }
  Shapes result = inputs;
  if (channels_first_) {
    result[0] =
        reordered(transformed_shape(reordered(result[0], to_channels_last)), to_channels_first);
  } else {
    result[0] = transformed_shape(result[0]);
  }
  return result;
}

ImageDraws AugmentationLayer::drawn(const DTensor& images, const CallContext& context) const {
  const int64_t count = draws(images.shape());
  if (count == 0) return {{}, {}};
  const Mesh& mesh = images.mesh();
  const DTensor seed = draw_seed(context, path(), mesh, seed_);
  const auto of_rows = [&](int64_t rows, const Layout& layout) {
    const DefaultLayoutScope scope(layout);
    return ops::random_uniform({rows, count}, seed);
  };
  const Layout sharded_like_images = Layout::from_axes(mesh, {fetch_layout(images).axis(0), {}});
  // In a data pipeline, a process may hold only rows [first_row, first_row + rows) of a batch.
  const int64_t rows = images.shape()[0], first_row = scoped_first_row(rows);
  DTensor numbers = of_rows(first_row + rows, sharded_like_images);
  if (first_row > 0) numbers = ops::slice(numbers, 0, first_row, rows);
  return {std::move(numbers),
          draws_for_batch() ? of_rows(1, Layout::replicated(mesh, 2)) : DTensor()};
}

DTensor AugmentationLayer::call(const Inputs& inputs, const CallContext& context) {
  return call_all(inputs, context)[0];
}

std::vector<DTensor> AugmentationLayer::call_all(const Inputs& inputs, const CallContext& context) {
  std::vector<DTensor> all = inputs;
  DTensor& images = all[0];
  if (images.dtype() != dtype_policy().compute) images = ops::cast(images, dtype_policy().compute);
  if (channels_first_) images = ops::transpose(images, to_channels_last);
  if (context.training) {
    all = transform_all(all, drawn(images, context));
  } else {
    images = outside_training(images);
  }
  if (channels_first_) all[0] = ops::transpose(all[0], to_channels_first);
  return all;
}

LabeledImages AugmentationLayer::call_labeled(const LabeledImages& batch,
                                              const CallContext& context) {
  const bool mixes = takes_labels() && batch.labels.defined();
  const at::Tensor &masks = batch.segmentation_masks, &boxes = batch.bounding_boxes.boxes;
  // Masks and boxes repeat the images' draws.
  CallContext same_draws = context;
  if (context.random) same_draws.random = std::make_shared<RandomStream>(*context.random);
  const DTensor input = packed_on_host(batch.images);
  const std::vector<DTensor> all =
      outputs(mixes ? Inputs{input, packed_on_host(batch.labels)} : Inputs{input}, context);
  LabeledImages result = batch;
  result.images = all[0].full();
  if (mixes) result.labels = all[1].full();
  if (!masks.defined() && !boxes.defined()) return result;
  const DTensor images = channels_first_ ? ops::transpose(input, to_channels_last) : input;
  const ImageDraws draws = drawn(images, same_draws);
  if (masks.defined()) {
    result.segmentation_masks =
        channels_last(packed_on_host(masks), channels_first_,
                      [&](const DTensor& x) { return transform_masks(x, draws); });
  }
  if (boxes.defined()) {
    result.bounding_boxes = transform_boxes(batch.bounding_boxes, images.shape(), draws);
  }
  return result;
}

std::shared_ptr<const AugmentationLayer> as_augmentation(const LayerHandle& handle) {
  auto layer = std::dynamic_pointer_cast<const AugmentationLayer>(handle.layer());
  if (layer) return layer;
  throw ConfigError(str(handle->class_name(), " ", handle->path()),
                    "the layer must be an image augmentation layer", handle->class_name(),
                    "give a layer such as RandomFlip");
}

Factor factor_range(const std::string& where, const std::string& option, const Factor& factor,
                    double minimum, double maximum) {
  const std::vector<double>& values = factor.values;
  // A NaN is not in any range.
  const bool in_range = std::all_of(values.begin(), values.end(), [&](double value) {
    return value >= minimum && value <= maximum;
  });
  if (in_range && values.size() == 1) {
    const double bound = std::abs(values[0]);
    return {std::max(-bound, minimum), bound};
  }
  if (in_range && values.size() == 2) {
    return {std::min(values[0], values[1]), std::max(values[0], values[1])};
  }
  throw ConfigError(where, str(option, " is one number or two in [", minimum, ", ", maximum, "]"),
                    factor.json().dump(), "give the maximum change of images");
}

std::vector<double> checked_value_range(const std::string& where, std::vector<double> range) {
  if (range.size() != 2) {
    throw ConfigError(where, "value_range holds two numbers", Json(range).dump(),
                      "give the smallest and the largest value of the images, such as {0, 255}");
  }
  std::sort(range.begin(), range.end());
  return range;
}

ops::AffineTransformOptions affine_options(const std::string& where, const std::string& fill_mode,
                                           const std::string& interpolation, double fill_value) {
  static const std::map<std::string, ops::FillMode> modes = {{"constant", ops::FillMode::constant},
                                                             {"nearest", ops::FillMode::nearest},
                                                             {"reflect", ops::FillMode::reflect},
                                                             {"wrap", ops::FillMode::wrap}};
  const auto mode = modes.find(fill_mode);
  if (mode == modes.end()) {
    throw ConfigError(where, "fill_mode is \"constant\", \"nearest\", \"reflect\" or \"wrap\"",
                      in_quotes(fill_mode), "leave it out for \"reflect\"");
  }
  if (interpolation != "nearest" && interpolation != "bilinear") {
    throw ConfigError(where, "interpolation is \"nearest\" or \"bilinear\"",
                      in_quotes(interpolation), "leave it out for \"bilinear\"");
  }
  return {
      .nearest = interpolation == "nearest", .fill_mode = mode->second, .fill_value = fill_value};
}

DTensor transform_rows(const std::vector<DTensor>& columns, const DTensor& like) {
  std::vector<DTensor> all = columns;
  for (DTensor& column : all) {
    if (!column.defined()) column = like * 0;
  }
  return ops::concat(all, 1);
}

}  // namespace tessera::detail
