#include <tessera/framework/ops/internal/image_size.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/interpolations.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {
namespace {

constexpr int64_t height_axis = 1, width_axis = 2;

/// Resizes an axis to `to` pixels, each copied from the input pixel that contains its centre.
DTensor nearest_cells(const DTensor& x, int64_t axis, int64_t to) {
  const int64_t from = x.size(axis);
  if (from == to) return x;
  const at::Tensor cells = (at::arange(to, at::kLong) * 2 + 1) * from;
  const at::Tensor numbers = cells.floor_divide(2 * to);
  return ops::gather(x, pack(numbers, Layout::replicated(x.mesh(), 1)), axis);
}

}  // namespace

ImageSize largest_crop(ImageSize images, ImageSize size) {
  return {std::max<int64_t>(std::min(images.width * size.height / size.width, images.height), 1),
          std::max<int64_t>(std::min(images.height * size.width / size.height, images.width), 1)};
}

DTensor cropped_to_aspect(const DTensor& images, ImageSize size) {
  const int64_t height = images.size(height_axis), width = images.size(width_axis);
  const auto [rows, columns] = largest_crop({height, width}, size);
  const DTensor middle = ops::slice(images, height_axis, (height - rows) / 2, rows);
  return ops::slice(middle, width_axis, (width - columns) / 2, columns);
}

DTensor padded_to_aspect(const DTensor& images, ImageSize size, double value) {
  const int64_t height = images.size(height_axis), width = images.size(width_axis);
  const int64_t rows = (std::max(height, width * size.height / size.width) - height) / 2;
  const int64_t columns = (std::max(width, height * size.width / size.height) - width) / 2;
  DTensor y = images;
  if (rows > 0) y = ops::pad(y, height_axis, rows, rows, value);
  if (columns > 0) y = ops::pad(y, width_axis, columns, columns, value);
  return y;
}

DTensor resized(const DTensor& images, ImageSize size, const std::string& interpolation,
                bool antialias) {
  if (interpolation == "nearest") {
    return nearest_cells(nearest_cells(images, height_axis, size.height), width_axis, size.width);
  }
  const ops::Interpolation how = interpolations().at(interpolation);
  const DTensor rows = ops::resample(images, height_axis, size.height, how, antialias);
  return ops::resample(rows, width_axis, size.width, how, antialias);
}

}  // namespace tessera::detail
