#include <tessera/layers/preprocessing/center_crop.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/image_size.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/labeled_layer.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/spatial_layer.hpp>
#include <tessera/layers/preprocessing/bounding_boxes.hpp>
#include <tessera/layers/preprocessing/internal/box_format.hpp>

namespace tessera {

using namespace detail;

namespace {

struct CenterCropArguments : CenterCropOptions {
  int64_t height = 0, width = 0;
};

template <class Visit>
void fields(CenterCropArguments& a, const Visit& visit) {
  ExtentOption height{a.height}, width{a.width};
  visit("height", height);
  visit("width", width);
  visit("data_format", a.data_format);
}

class CenterCropLayer final : public LayerOf<CenterCropLayer, CenterCropArguments, SpatialLayer>,
                              public LabeledLayer {
 public:
  static constexpr const char* keras_name = "CenterCrop";
  explicit CenterCropLayer(const CenterCropArguments& arguments);
  LabeledImages call_labeled(const LabeledImages& batch, const CallContext& context) override;

 protected:
  Shape image_shape(const Shape& x) const override {
    return {x[0], size_.height, size_.width, x[3]};
  }
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  /// Returns the centre crop; of images that are too small, resized with `interpolation`.
  DTensor center_crop(const DTensor& images, const std::string& interpolation) const;

  ImageSize size_;
};

const RegisteredLayerOf<CenterCropLayer> registered_center_crop;

CenterCropLayer::CenterCropLayer(const CenterCropArguments& arguments)
    : LayerOf(arguments, keras_name, 2, arguments.data_format),
      size_{arguments.height, arguments.width} {
  arguments_.data_format = data_format();
  check_positive(size_.height, "height");
  check_positive(size_.width, "width");
  if (!arguments.bounding_box_format.empty()) box_format(where(), arguments.bounding_box_format);
}

DTensor CenterCropLayer::transform(const DTensor& x, const CallContext&) {
  const at::ScalarType dtype = dtype_policy().compute;
  return center_crop(ops::cast(x, dtype), "bilinear");
}

DTensor CenterCropLayer::center_crop(const DTensor& images,
                                     const std::string& interpolation) const {
  const int64_t rows = images.size(1) - size_.height, columns = images.size(2) - size_.width;
  if (rows < 0 || columns < 0) {
    return resized(cropped_to_aspect(images, size_), size_, interpolation);
  }
  return ops::slice(ops::slice(images, 1, rows / 2, size_.height), 2, columns / 2, size_.width);
}

LabeledImages CenterCropLayer::call_labeled(const LabeledImages& batch,
                                            const CallContext& context) {
  const bool first = data_format() == "channels_first";
  LabeledImages result = batch;
  result.images = (*this)(packed_on_host(batch.images), context).full();
  if (batch.segmentation_masks.defined()) {
    result.segmentation_masks =
        channels_last(packed_on_host(batch.segmentation_masks), first,
                      [&](const DTensor& x) { return center_crop(x, "nearest"); });
  }
  if (!batch.bounding_boxes.boxes.defined()) return result;
  const ImageExtent from = image_extent(batch.images, first);
  const ImageExtent to{double(size_.height), double(size_.width)};
  const bool small = from.height < to.height || from.width < to.width;
  const ImageSize crop_size =
      small ? largest_crop({int64_t(from.height), int64_t(from.width)}, size_) : size_;
  const auto top = double((int64_t(from.height) - crop_size.height) / 2);
  const auto left = double((int64_t(from.width) - crop_size.width) / 2);
  const double of_x = to.width / double(crop_size.width),
               of_y = to.height / double(crop_size.height);
  const std::string& format = required_box_format(where(), arguments_.bounding_box_format);
  result.bounding_boxes =
      transformed_boxes(batch.bounding_boxes, format, from, to, [&](const auto& x) {
        return scaled_corners(bounding_boxes::pad(x, -top, -left), of_y, of_x);
      });
  return result;
}

}  // namespace

CenterCrop::CenterCrop(int64_t height, int64_t width, const CenterCropOptions& options)
    : LayerHandle(make_layer<CenterCropLayer>(CenterCropArguments{options, height, width})) {}

}  // namespace tessera
