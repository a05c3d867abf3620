#include <tessera/layers/internal/labeled_layer.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/preprocessing/bounding_boxes.hpp>

namespace tessera::detail {

namespace {

Shape shape_of(const at::Tensor& tensor) { return tensor.sizes().vec(); }

void check_boxes(const std::string& where, const BoundingBoxes& boxes, int64_t rows) {
  const at::Tensor &numbers = boxes.boxes, &labels = boxes.labels;
  if (!numbers.defined() && !labels.defined()) return;
  if (!numbers.defined() || !labels.defined()) {
    throw ShapeError(where, "bounding_boxes hold boxes and a label for each",
                     numbers.defined() ? "no labels" : "no boxes", "give both, or neither");
  }
  const bool fits = numbers.dim() == 3 && numbers.size(0) == rows && numbers.size(2) == 4;
  if (!fits) {
    throw ShapeError(where, str("boxes are (", rows, ", boxes, 4), or (boxes, 4) of one image"),
                     to_string(shape_of(numbers)),
                     "give each image the same number of boxes, padded with label -1");
  }
  if (labels.dim() == 2 && labels.size(0) == rows && labels.size(1) == numbers.size(1)) return;
  throw ShapeError(where, str("labels of boxes are (", rows, ", ", numbers.size(1), ")"),
                   to_string(shape_of(labels)), "give the class of each box");
}

}  // namespace

DTensor packed_on_host(const at::Tensor& tensor) {
  static const Mesh mesh = create_mesh({{"batch", 1}}, virtual_cpus(1));
  return pack(tensor, Layout::replicated(mesh, tensor.dim()));
}

LabeledImages call_labeled(Layer& layer, const LabeledImages& batch, const CallContext& context) {
  if (auto* const labeled = dynamic_cast<LabeledLayer*>(&layer)) {
    return labeled->call_labeled(batch, context);
  }
  LabeledImages result = batch;
  result.images = layer.outputs({packed_on_host(batch.images)}, context)[0].full();
  const bool follows = batch.bounding_boxes.boxes.defined() || batch.segmentation_masks.defined();
  if (!follows || result.images.sizes().slice(0, 3) == batch.images.sizes().slice(0, 3))
    return result;
  throw ConfigError(
      layer.class_name() + " " + layer.path(),
      "a layer that resizes images must support boxes and masks, like Resizing and RandomCrop",
      str(to_string(shape_of(result.images)), " of images ", to_string(shape_of(batch.images))),
      "resize with one of those layers");
}

void check_labeled(const std::string& where, const LabeledImages& batch) {
  const at::Tensor &images = batch.images, &masks = batch.segmentation_masks;
  const int64_t rows = images.size(0);
  if (batch.labels.defined() && (batch.labels.dim() == 0 || batch.labels.size(0) != rows)) {
    throw ShapeError(where, str("labels have one row for each of ", rows, " images"),
                     to_string(shape_of(batch.labels)), "give one row for each image");
  }
  check_boxes(where, batch.bounding_boxes, rows);
  if (!masks.defined()) return;
  int64_t same = 0;
  for (int64_t axis = 0; masks.dim() == 4 && axis < 4; ++axis) {
    if (masks.size(axis) == images.size(axis)) ++same;
  }
  // The channel axis, first or last, may differ.
  if (same >= 3 && masks.size(0) == rows) return;
  throw ShapeError(where, "segmentation_masks have the axes of the images, except for the channels",
                   str(to_string(shape_of(masks)), " for ", to_string(shape_of(images))),
                   "give the class of each pixel, with a channel axis");
}

at::Tensor channels_last(const DTensor& x, bool channels_first,
                         const std::function<DTensor(const DTensor&)>& f) {
  if (!channels_first) return f(x).full();
  return ops::transpose(f(ops::transpose(x, {0, 2, 3, 1})), {0, 3, 1, 2}).full();
}

ImageExtent image_extent(const at::Tensor& images, bool channels_first) {
  const int64_t height = channels_first ? 2 : 1;
  return {double(images.size(height)), double(images.size(height + 1))};
}

const std::string& required_box_format(const std::string& where, const std::string& format) {
  if (!format.empty()) return format;
  throw ConfigError(where, "bounding_box_format must be set for bounding boxes", "none",
                    "give the layer a bounding_box_format, such as \"xyxy\"");
}

BoundingBoxes transformed_boxes(const BoundingBoxes& boxes, const std::string& format,
                                ImageExtent from, ImageExtent to,
                                const std::function<at::Tensor(const at::Tensor&)>& f) {
  using namespace bounding_boxes;
  const at::Tensor corners = convert_format(boxes.boxes, format, "xyxy", from.height, from.width);
  const BoundingBoxes result = clip_to_image_size({f(corners), boxes.labels}, to.height, to.width);
  return {convert_format(result.boxes, "xyxy", format, to.height, to.width), result.labels};
}

at::Tensor scaled_corners(const at::Tensor& corners, double of_y, double of_x) {
  return corners * at::tensor({of_x, of_y, of_x, of_y}, corners.options());
}

DTensor transformed_masks(const DTensor& masks, const std::function<DTensor(const DTensor&)>& f) {
  const at::ScalarType dtype = masks.dtype();
  if (at::isFloatingType(dtype)) return f(masks);
  const bool wide = dtype == at::kInt || dtype == at::kLong;
  return ops::cast(f(ops::cast(masks, wide ? at::kDouble : at::kFloat)), dtype);
}

}  // namespace tessera::detail
