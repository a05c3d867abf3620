#include <tessera/layers/internal/colors.hpp>

#include <limits>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/augmentation.hpp>

namespace tessera::detail {

DTensor in_range(const DTensor& images, const std::vector<double>& from,
                 const std::vector<double>& to) {
  if (from == to) return images;
  // Divides rather than multiplying by the inverse, whose rounding would make integer values
  // inexact.
  const DTensor share = (images - from[0]) / constant_like(images, from[1] - from[0]);
  return share * (to[1] - to[0]) + to[0];
}

void check_rgb(const std::string& where, const Shape& images) {
  if (images[3] == -1 || images[3] == 3) return;
  throw ShapeError(where, "the images have three channels, red, green and blue", to_string(images),
                   "give it images in RGB");
}

DTensor gray_of(const DTensor& images) {
  if (images.shape()[3] == 1) return images;
  const std::vector<DTensor> rgb = ops::split(images, 3, 3);
  return rgb[0] * 0.2989 + rgb[1] * 0.587 + rgb[2] * 0.114;
}

Hsv hsv_of(const DTensor& rgb) {
  const DTensor zero = constant_like(rgb, 0), one = constant_like(rgb, 1);
  const double epsilon = rgb.dtype() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                    : std::numeric_limits<float>::epsilon();
  const DTensor tiny = ops::less(ops::abs(rgb), constant_like(rgb, epsilon));
  const std::vector<DTensor> planes = ops::split(ops::where(tiny, zero, rgb), 3, 3);
  const DTensor &r = planes[0], &g = planes[1], &b = planes[2];
  const DTensor value = ops::maximum(ops::maximum(r, g), b);
  const DTensor range = value - ops::minimum(ops::minimum(r, g), b);
  const DTensor bright = ops::greater(value, zero), colored = ops::greater(range, zero);
  const DTensor saturation = ops::where(bright, range / ops::where(bright, value, one), zero);
  const DTensor norm = ops::reciprocal(ops::where(colored, range, one) * 6);
  DTensor hue =
      ops::where(ops::equal(value, g), norm * (b - r) + 1.0 / 3, norm * (r - g) + 2.0 / 3);
  hue = ops::where(ops::equal(value, r), norm * (g - b), hue);
  const DTensor below = ops::cast(ops::less(hue, zero), hue.dtype());
  return {ops::where(colored, hue, zero) + below, saturation, value};
}

DTensor rgb_of(const Hsv& hsv) {
  const DTensor angle = ops::remainder(hsv.hue, constant_like(hsv.hue, 1)) * 6;
  const DTensor unsaturated = -hsv.saturation + 1;
  const auto plane = [&](const DTensor& share) {
    return hsv.value * (unsaturated + hsv.saturation * ops::clip(share, 0, 1));
  };
  return ops::concat({plane(ops::abs(angle - 3) - 1), plane(-ops::abs(angle - 2) + 2),
                      plane(-ops::abs(angle - 4) + 2)},
                     3);
}

}  // namespace tessera::detail
