#include <tessera/layers/preprocessing/bounding_boxes.hpp>

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/layers/preprocessing/internal/box_format.hpp>

namespace tessera::bounding_boxes {

using namespace detail;

namespace {

/// keras.backend.epsilon().
constexpr double epsilon = 1e-7;

/// Returns boxes (…, 4) as float32 or float64. Throws ShapeError for another shape.
at::Tensor numbers_of(const std::string& where, const at::Tensor& boxes) {
  if (!boxes.defined() || boxes.dim() == 0 || boxes.size(-1) != 4) {
    throw ShapeError(where, "boxes are (…, 4)",
                     boxes.defined() ? to_string(boxes.sizes().vec()) : "an empty tensor",
                     "give four numbers for each box");
  }
  return boxes.scalar_type() == at::kDouble ? boxes : boxes.to(at::kFloat);
}

std::array<at::Tensor, 4> columns_of(const at::Tensor& boxes) {
  return {boxes.select(-1, 0), boxes.select(-1, 1), boxes.select(-1, 2), boxes.select(-1, 3)};
}

/// Returns left, top, right and bottom, in the units of the format.
at::Tensor corners_of(const at::Tensor& boxes, const BoxFormat& format) {
  auto [x, y, right, bottom] = columns_of(boxes);
  if (format.y_first) {
    std::swap(x, y);
    std::swap(right, bottom);
  }
  if (format.kind == BoxFormat::corner) {
    right = x + right;
    bottom = y + bottom;
  } else if (format.kind == BoxFormat::center) {
    const at::Tensor half_w = right / 2, half_h = bottom / 2;
    right = x + half_w;
    bottom = y + half_h;
    x = x - half_w;
    y = y - half_h;
  }
  return at::stack({x, y, right, bottom}, -1);
}

/// Inverts corners_of().
at::Tensor from_corners(const at::Tensor& corners, const BoxFormat& format) {
  auto [x, y, right, bottom] = columns_of(corners);
  if (format.kind != BoxFormat::corners) {
    right = right - x;
    bottom = bottom - y;
  }
  if (format.kind == BoxFormat::center) {
    x = x + right / 2;
    y = y + bottom / 2;
  }
  return format.y_first ? at::stack({y, x, bottom, right}, -1)
                        : at::stack({x, y, right, bottom}, -1);
}

/// Returns (width, height, width, height), which scales a row of corners.
at::Tensor extents(const at::Tensor& like, double height, double width) {
  return at::tensor({width, height, width, height}, like.options());
}

at::Tensor clipped(const at::Tensor& boxes, double height, double width) {
  return boxes.clamp_min(0).minimum(extents(boxes, height, width));
}

void check_encoding(const std::string& where, const BoxDeltasOptions& options) {
  if (options.encoding_format != "center_yxhw" && options.encoding_format != "center_xywh") {
    throw ConfigError(where, "encoding_format is \"center_yxhw\" or \"center_xywh\"",
                      in_quotes(options.encoding_format), "leave it out for \"center_yxhw\"");
  }
  if (options.variance.empty() || options.variance.size() == 4) return;
  throw ConfigError(where, "variance holds four numbers", str(options.variance.size()),
                    "give one for each delta, or none");
}

}  // namespace

at::Tensor convert_format(const at::Tensor& boxes, const std::string& source,
                          const std::string& target, double height, double width) {
  const std::string where = "convert_format";
  const BoxFormat from = box_format(where, source), to = box_format(where, target);
  const at::Tensor numbers = numbers_of(where, boxes);
  if ((from.relative || to.relative) && !(height > 0 && width > 0)) {
    throw ConfigError(
        where, "height and width are above 0 for a relative format",
        str(in_quotes(source), " to ", in_quotes(target), " with ", height, " and ", width),
        "give the size of the image");
  }
  if (from == to) return numbers;
  at::Tensor corners = corners_of(numbers, from);
  if (from.relative && !to.relative) corners = corners * extents(corners, height, width);
  const at::Tensor result = from_corners(corners, to);
  if (!to.relative || from.relative) return result;
  return result / (to.y_first ? extents(result, width, height) : extents(result, height, width));
}

BoundingBoxes clip_to_image_size(const BoundingBoxes& boxes, double height, double width,
                                 const std::string& bounding_box_format) {
  const std::string where = "clip_to_image_size";
  const BoxFormat format = box_format(where, bounding_box_format);
  if (format.y_first || format.kind != BoxFormat::corners) {
    throw ConfigError(where, "the format is \"xyxy\" or \"rel_xyxy\"",
                      in_quotes(bounding_box_format), "call convert_format() before");
  }
  const at::Tensor numbers = numbers_of(where, boxes.boxes);
  const at::Tensor result = format.relative ? numbers.clamp(0, 1) : clipped(numbers, height, width);
  if (!boxes.labels.defined()) return {result, {}};
  const auto [x, y, right, bottom] = columns_of(result);
  const at::Tensor nonempty = ((right - x) * (bottom - y)).gt(0);
  if (nonempty.sizes() != boxes.labels.sizes()) {
    throw ShapeError(where,
                     str("labels are ", to_string(nonempty.sizes().vec()), ", one for each box"),
                     to_string(boxes.labels.sizes().vec()), "give the class of each box");
  }
  // Labels of an unsigned dtype become int32, which holds -1.
  const bool without_sign =
      boxes.labels.scalar_type() == at::kByte || boxes.labels.scalar_type() == at::kBool;
  const at::Tensor labels = without_sign ? boxes.labels.to(at::kInt) : boxes.labels;
  return {result, at::where(nonempty, labels, at::full({}, -1, labels.options()))};
}

at::Tensor crop(const at::Tensor& boxes, double top, double left, double height, double width) {
  const at::Tensor numbers = numbers_of("crop", boxes);
  return clipped(numbers - extents(numbers, top, left), height, width);
}

at::Tensor pad(const at::Tensor& boxes, double top, double left) {
  const at::Tensor numbers = numbers_of("pad", boxes);
  return numbers + extents(numbers, top, left);
}

at::Tensor compute_iou(const at::Tensor& boxes1, const at::Tensor& boxes2,
                       const std::string& bounding_box_format, const ComputeIouOptions& options) {
  const auto corners = [&](const at::Tensor& boxes) {
    const at::Tensor converted =
        convert_format(boxes, bounding_box_format, "xyxy", options.height, options.width);
    if (converted.dim() == 2 || converted.dim() == 3) return converted;
    throw ShapeError("compute_iou", "boxes are (boxes, 4) or (batch, boxes, 4)",
                     to_string(boxes.sizes().vec()), "give them one of these shapes");
  };
  const at::Tensor one = corners(boxes1).unsqueeze(-2), other = corners(boxes2).unsqueeze(-3);
  const auto area = [](const at::Tensor& boxes) {
    const auto [x, y, right, bottom] = columns_of(boxes);
    return (bottom - y) * (right - x);
  };
  const auto [x1, y1, right1, bottom1] = columns_of(one);
  const auto [x2, y2, right2, bottom2] = columns_of(other);
  const at::Tensor height = (bottom1.minimum(bottom2) - y1.maximum(y2)).clamp_min(0);
  const at::Tensor width = (right1.minimum(right2) - x1.maximum(x2)).clamp_min(0);
  const at::Tensor shared = height * width;
  const at::Tensor iou = shared / (area(one) + area(other) - shared + epsilon);
  if (!options.use_masking) return iou;
  const at::Tensor masked = one.amax(-1).lt(0).logical_or(other.amax(-1).lt(0));
  return iou.masked_fill(masked, options.mask_val);
}

at::Tensor compute_ciou(const at::Tensor& boxes1, const at::Tensor& boxes2,
                        const std::string& bounding_box_format) {
  if (box_format("compute_ciou", bounding_box_format).relative) {
    throw ConfigError("compute_ciou", "the format is in pixels", in_quotes(bounding_box_format),
                      "call convert_format() before");
  }
  const auto [x1, y1, right1, bottom1] =
      columns_of(convert_format(boxes1, bounding_box_format, "xyxy"));
  const auto [x2, y2, right2, bottom2] =
      columns_of(convert_format(boxes2, bounding_box_format, "xyxy"));
  const at::Tensor w1 = right1 - x1, h1 = bottom1 - y1 + epsilon;
  const at::Tensor w2 = right2 - x2, h2 = bottom2 - y2 + epsilon;
  const at::Tensor shared = (right1.minimum(right2) - x1.maximum(x2)).clamp_min(0) *
                            (bottom1.minimum(bottom2) - y1.maximum(y2)).clamp_min(0);
  const at::Tensor iou = shared / (w1 * h1 + w2 * h2 - shared + 2 * epsilon);
  const at::Tensor hull_w = right1.maximum(right2) - x1.minimum(x2);
  const at::Tensor hull_h = bottom1.maximum(bottom2) - y1.minimum(y2);
  const at::Tensor diagonal = hull_w.square() + hull_h.square() + epsilon;
  const at::Tensor distance = ((x1 + right1) / 2 - (x2 + right2) / 2).square() +
                              ((y1 + bottom1) / 2 - (y2 + bottom2) / 2).square();
  const double factor = 4 / (std::numbers::pi * std::numbers::pi);
  const at::Tensor v = ((w2 / h2).atan() - (w1 / h1).atan()).square() * factor;
  const at::Tensor alpha = v / (v - iou + (1 + epsilon));
  return iou - (distance / diagonal + v * alpha);
}

at::Tensor encode_box_to_deltas(const at::Tensor& anchors, const at::Tensor& boxes,
                                const std::string& anchor_format, const std::string& box_format,
                                const BoxDeltasOptions& options) {
  check_encoding("encode_box_to_deltas", options);
  const auto encoded = [&](const at::Tensor& input, const std::string& format) {
    return convert_format(input, format, options.encoding_format, options.height, options.width);
  };
  const at::Tensor from = encoded(anchors, anchor_format), to = encoded(boxes, box_format);
  const at::Tensor size = from.narrow(-1, 2, 2).clamp_min(epsilon);
  const at::Tensor shift = (to.narrow(-1, 0, 2) - from.narrow(-1, 0, 2)) / size;
  const at::Tensor growth = (to.narrow(-1, 2, 2).clamp_min(epsilon) / size).log();
  const at::Tensor deltas = at::cat({shift, growth.expand_as(shift)}, -1);
  if (options.variance.empty()) return deltas;
  return deltas / at::tensor(options.variance, deltas.options());
}

at::Tensor decode_deltas_to_boxes(const at::Tensor& anchors, const at::Tensor& boxes_delta,
                                  const std::string& anchor_format, const std::string& box_format,
                                  const BoxDeltasOptions& options) {
  check_encoding("decode_deltas_to_boxes", options);
  const at::Tensor from = convert_format(anchors, anchor_format, options.encoding_format,
                                         options.height, options.width);
  at::Tensor deltas = numbers_of("decode_deltas_to_boxes", boxes_delta);
  if (!options.variance.empty()) deltas = deltas * at::tensor(options.variance, deltas.options());
  const at::Tensor size = from.narrow(-1, 2, 2);
  const at::Tensor center = deltas.narrow(-1, 0, 2) * size + from.narrow(-1, 0, 2);
  const at::Tensor decoded = at::cat({center, deltas.narrow(-1, 2, 2).exp() * size}, -1);
  return convert_format(decoded, options.encoding_format, box_format, options.height,
                        options.width);
}

}  // namespace tessera::bounding_boxes
