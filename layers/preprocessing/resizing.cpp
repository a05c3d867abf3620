#include <tessera/layers/preprocessing/resizing.hpp>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/image.hpp>
#include <tessera/framework/ops/internal/image_size.hpp>
#include <tessera/framework/ops/internal/interpolations.hpp>
#include <tessera/layers/internal/labeled_layer.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/spatial_layer.hpp>
#include <tessera/layers/preprocessing/bounding_boxes.hpp>
#include <tessera/layers/preprocessing/internal/box_format.hpp>

namespace tessera {

using namespace detail;

namespace {

struct ResizingArguments : ResizingOptions {
  int64_t height = 0, width = 0;
};

template <class Visit>
void fields(ResizingArguments& a, const Visit& visit) {
  ExtentOption height{a.height}, width{a.width};
  visit("height", height);
  visit("width", width);
  visit("interpolation", a.interpolation);
  visit("crop_to_aspect_ratio", a.crop_to_aspect_ratio);
  visit("pad_to_aspect_ratio", a.pad_to_aspect_ratio);
  visit("fill_mode", a.fill_mode);
  visit("fill_value", a.fill_value);
  visit("antialias", a.antialias);
  visit("data_format", a.data_format);
}

class ResizingLayer final : public LayerOf<ResizingLayer, ResizingArguments, SpatialLayer>,
                            public LabeledLayer {
 public:
  static constexpr const char* keras_name = "Resizing";
  explicit ResizingLayer(const ResizingArguments& arguments);
  LabeledImages call_labeled(const LabeledImages& batch, const CallContext& context) override;

 protected:
  Shape image_shape(const Shape& x) const override {
    return {x[0], size_.height, size_.width, x[3]};
  }
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  void check_options() const;
  /// Returns the images in the target size.
  DTensor in_size(const DTensor& x, const std::string& interpolation) const;
  at::Tensor moved_corners(const at::Tensor& corners, ImageExtent from) const;

  ImageSize size_;
};

const RegisteredLayerOf<ResizingLayer> registered_resizing;

ResizingLayer::ResizingLayer(const ResizingArguments& arguments)
    : LayerOf(arguments, keras_name, 2, arguments.data_format),
      size_{arguments.height, arguments.width} {
  arguments_.data_format = data_format();
  check_positive(size_.height, "height");
  check_positive(size_.width, "width");
  check_options();
}

void ResizingLayer::check_options() const {
  if (!arguments_.bounding_box_format.empty()) box_format(where(), arguments_.bounding_box_format);
  std::vector<std::string> known = {"nearest"};
  for (const auto& [name, how] : interpolations()) known.push_back(name);
  const std::string& interpolation = arguments_.interpolation;
  if (std::find(known.begin(), known.end(), interpolation) == known.end()) {
    throw ConfigError(where(), "interpolation is one of " + quoted_list(known),
                      in_quotes(interpolation), suggestion(interpolation, known));
  }
  if (arguments_.fill_mode != "constant") {
    throw ConfigError(where(), "fill_mode is \"constant\"", in_quotes(arguments_.fill_mode),
                      "leave it out");
  }
  if (arguments_.crop_to_aspect_ratio && arguments_.pad_to_aspect_ratio) {
    throw ConfigError(where(),
                      "at most one of crop_to_aspect_ratio and pad_to_aspect_ratio is true", "both",
                      "leave one of them out");
  }
}

DTensor ResizingLayer::transform(const DTensor& x, const CallContext&) {
  return in_size(x, arguments_.interpolation);
}

DTensor ResizingLayer::in_size(const DTensor& x, const std::string& interpolation) const {
  return ops::image::resize(x, {size_.height, size_.width},
                            {.interpolation = interpolation,
                             .antialias = arguments_.antialias,
                             .crop_to_aspect_ratio = arguments_.crop_to_aspect_ratio,
                             .pad_to_aspect_ratio = arguments_.pad_to_aspect_ratio,
                             .fill_value = arguments_.fill_value});
}

/// Moves corners (…, 4) of boxes in images of size `from` as Keras does.
at::Tensor ResizingLayer::moved_corners(const at::Tensor& corners, ImageExtent from) const {
  const auto height = double(size_.height), width = double(size_.width);
  double of_x = width / from.width, of_y = height / from.height, left = 0, top = 0;
  if (arguments_.pad_to_aspect_ratio) {
    of_x = of_y = std::min(of_x, of_y);
    left = std::floor((width - from.width * of_x) / 2);
    top = std::floor((height - from.height * of_y) / 2);
  } else if (arguments_.crop_to_aspect_ratio) {
    of_x = of_y = std::max(of_x, of_y);
    left = -std::floor((from.width * of_x - width) / 2);
    top = -std::floor((from.height * of_y - height) / 2);
  }
  return bounding_boxes::pad(scaled_corners(corners, of_y, of_x), top, left);
}

LabeledImages ResizingLayer::call_labeled(const LabeledImages& batch, const CallContext& context) {
  const bool first = data_format() == "channels_first";
  LabeledImages result = batch;
  result.images = (*this)(packed_on_host(batch.images), context).full();
  if (batch.segmentation_masks.defined()) {
    const DTensor masks = packed_on_host(batch.segmentation_masks);
    result.segmentation_masks =
        channels_last(masks, first, [&](const DTensor& x) { return in_size(x, "nearest"); });
  }
  const at::Tensor& boxes = batch.bounding_boxes.boxes;
  if (!boxes.defined()) return result;
  const ImageExtent from = image_extent(batch.images, first);
  const ImageExtent to{double(size_.height), double(size_.width)};
  const std::string& format = required_box_format(where(), arguments_.bounding_box_format);
  // Boxes of all 0 or all -1 are padding; they become 0.
  const at::Tensor none = boxes.eq(-1).all(-1).logical_or(boxes.eq(0).all(-1)).unsqueeze(-1);
  result.bounding_boxes =
      transformed_boxes(batch.bounding_boxes, format, from, to,
                        [&](const auto& x) { return moved_corners(x, from).masked_fill(none, 0); });
  return result;
}

}  // namespace

Resizing::Resizing(int64_t height, int64_t width, const ResizingOptions& options)
    : LayerHandle(make_layer<ResizingLayer>(ResizingArguments{options, height, width})) {}

}  // namespace tessera
