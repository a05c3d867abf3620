#include <tessera/framework/ops/image.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <c10/util/FunctionRef.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/image_size.hpp>
#include <tessera/framework/ops/internal/interpolations.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::ops {

using namespace detail;

namespace {

constexpr int64_t first_axis = 1;  // of height, or of depth

/// Returns the result of a function of images (batch, spatial…, channels) for images in another
/// order of axes, or for one image.
DTensor for_images(const char* op, const DTensor& images, const std::string& data_format,
                   int64_t spatial, c10::function_ref<DTensor(const DTensor&)> function) {
  const bool first = data_format == "channels_first";
  if (!first && !data_format.empty() && data_format != "channels_last") {
    throw ConfigError(op, R"(data_format is "channels_last" or "channels_first")",
                      in_quotes(data_format), "leave it out for channels_last");
  }
  const bool single = images.rank() == spatial + 1;
  if (!single && images.rank() != spatial + 2) {
    throw ShapeError(op, str("images have rank ", spatial + 2, ", or ", spatial + 1, " for one"),
                     to_string(images.shape()), "add or remove axes");
  }
  std::vector<int64_t> to_last = {0}, back = {0, spatial + 1};
  for (int64_t a = 1; a <= spatial; ++a) {
    to_last.push_back(a + 1);
    back.push_back(a);
  }
  to_last.push_back(1);
  DTensor x = single ? expand_dims(images, 0) : images;
  if (first) x = transpose(x, to_last);
  DTensor y = function(x);
  if (first) y = transpose(y, back);
  return single ? squeeze(y, {0}) : y;
}

/// Rounds floating-point numbers to an integer dtype, saturating at its limits.
DTensor rounded_to(const DTensor& x, at::ScalarType dtype) {
  const auto within = [&](double lo, double hi) { return cast(clip(round(x), lo, hi), dtype); };
  switch (dtype) {
    case at::kByte:
      return within(0, 255);
    case at::kChar:
      return within(-128, 127);
    case at::kShort:
      return within(-32768, 32767);
    default:
      return cast(round(x), dtype);
  }
}

void check_resizing(const std::array<int64_t, 2>& size, const image::ResizeOptions& options) {
  const char* const op = "image::resize";
  if (size[0] < 1 || size[1] < 1) {
    throw ShapeError(op, "height and width are at least 1", str(size[0], " x ", size[1]),
                     "choose another size");
  }
  std::vector<std::string> known = {"nearest"};
  for (const auto& [name, how] : interpolations()) known.push_back(name);
  const std::string& interpolation = options.interpolation;
  if (std::find(known.begin(), known.end(), interpolation) == known.end()) {
    throw ConfigError(op, "interpolation is one of " + quoted_list(known), in_quotes(interpolation),
                      suggestion(interpolation, known));
  }
  if (options.crop_to_aspect_ratio && options.pad_to_aspect_ratio) {
    throw ConfigError(op, "at most one of crop_to_aspect_ratio and pad_to_aspect_ratio is true",
                      "both", "leave one of them out");
  }
}

/// One axis of extract_patches(): `count` patches of `size` pixels.
struct PatchAxis {
  int64_t size = 1, stride = 1, dilation = 1, before = 0, after = 0, count = 0;
};

PatchAxis patch_axis(int64_t extent, int64_t size, int64_t stride, int64_t dilation, bool same) {
  PatchAxis axis{size, stride, dilation};
  const int64_t covered = (size - 1) * dilation + 1;
  if (same) {
    axis.count = (extent + stride - 1) / stride;
    const int64_t missing = std::max<int64_t>((axis.count - 1) * stride + covered - extent, 0);
    axis.before = missing / 2;
    axis.after = missing - axis.before;
  } else if (extent >= covered) {
    axis.count = (extent - covered) / stride + 1;
  } else {
    throw ShapeError("image::extract_patches", str("a patch covers at most ", extent, " pixels"),
                     str(covered), "choose smaller patches, or padding \"same\"");
  }
  return axis;
}

/// Splits an axis into (count, size): (…, n, …) -> (…, count, size, …).
DTensor split_into_patches(DTensor x, int64_t a, const PatchAxis& axis) {
  if (axis.before + axis.after > 0) x = pad(x, a, axis.before, axis.after);
  if (axis.stride == axis.size && axis.dilation == 1) {
    const DTensor used = slice(x, a, 0, axis.count * axis.size);
    Shape shape = used.shape();
    shape[size_t(a)] = axis.size;
    shape.insert(shape.begin() + a, axis.count);
    return reshape(used, shape);
  }
  const at::Tensor starts = at::arange(axis.count, at::kLong).mul_(axis.stride).unsqueeze(1);
  const at::Tensor pixels = starts + at::arange(axis.size, at::kLong).mul_(axis.dilation);
  return gather(x, pack(pixels, Layout::replicated(x.mesh(), 2)), a);
}

/// Expands one value to one for each axis; no value means `otherwise`.
std::vector<int64_t> for_each_axis(const std::vector<int64_t>& values,
                                   const std::vector<int64_t>& otherwise, const char* name) {
  const size_t axes = otherwise.size();
  std::vector<int64_t> all = values.empty() ? otherwise : values;
  if (all.size() == 1) all.assign(axes, all[0]);
  const bool positive = std::all_of(all.begin(), all.end(), [](int64_t v) { return v >= 1; });
  if (all.size() == axes && positive) return all;
  throw ConfigError("image::extract_patches", str(name, " has one number of at least 1, or ", axes),
                    to_string(all), "pass one for each axis");
}

using Extent = std::optional<int64_t>;

/// Returns the numbers before and after an axis of which the extents with and without them are
/// `outer` and `inner`; two of `before`, `after` and the unknown extent are given.
std::array<int64_t, 2> sides(const char* op, const char* names, Extent before, Extent after,
                             Extent outer, Extent inner) {
  if (bool(before) + bool(after) + (outer && inner) != 2) {
    throw ConfigError(op, str("two of ", names, " are given"), "another number",
                      "leave out one of the three");
  }
  if (!before) before = *outer - *inner - *after;
  if (!after) after = *outer - *inner - *before;
  if (*before >= 0 && *after >= 0) return {*before, *after};
  throw ShapeError(op, str(names, " are at least 0"), str(*before, " before, ", *after, " after"),
                   "correct the sizes");
}

constexpr const char* vertical = "top, bottom and target_height";
constexpr const char* horizontal = "left, right and target_width";

}  // namespace

DTensor image::resize(const DTensor& images, const std::array<int64_t, 2>& size,
                      const ResizeOptions& options) {
  check_resizing(size, options);
  // As in TensorFlow, float16, bfloat16 and integers are computed in float32.
  const at::ScalarType dtype = images.dtype();
  const bool exact = options.interpolation == "nearest" || dtype == at::kDouble;
  return for_images("image::resize", images, options.data_format, 2, [&](const DTensor& x) {
    const ImageSize target{size[0], size[1]};
    DTensor y = exact || dtype == at::kFloat ? x : cast(x, at::kFloat);
    if (options.crop_to_aspect_ratio) y = cropped_to_aspect(y, target);
    if (options.pad_to_aspect_ratio) y = padded_to_aspect(y, target, options.fill_value);
    y = resized(y, target, options.interpolation, options.antialias);
    if (y.dtype() == dtype) return y;
    return at::isFloatingType(dtype) ? cast(y, dtype) : rounded_to(y, dtype);
  });
}

DTensor image::extract_patches(const DTensor& images, const std::vector<int64_t>& size,
                               const ExtractPatchesOptions& options) {
  const char* const op = "image::extract_patches";
  const auto spatial = static_cast<int64_t>(size.size());
  const bool same = options.padding == "same";
  if (spatial != 2 && spatial != 3) {
    throw ConfigError(op, "size has two or three extents", to_string(size), "pass one for an axis");
  }
  if (!same && options.padding != "valid") {
    throw ConfigError(op, R"(padding is "valid" or "same")", in_quotes(options.padding),
                      "choose one of them");
  }
  const std::vector<int64_t> sizes = for_each_axis({}, size, "size");
  const std::vector<int64_t> strides = for_each_axis(options.strides, size, "strides");
  const std::vector<int64_t> dilations =
      for_each_axis(options.dilation_rate, std::vector<int64_t>(size.size(), 1), "dilation_rate");
  return for_images(op, images, options.data_format, spatial, [&](DTensor x) {
    std::vector<int64_t> order = {0}, pixels;
    Shape shape = {x.size(0)};
    for (int64_t s = 0; s < spatial; ++s) {
      const auto i = static_cast<size_t>(s);
      const int64_t a = first_axis + 2 * s;
      const PatchAxis axis = patch_axis(x.size(a), sizes[i], strides[i], dilations[i], same);
      x = split_into_patches(x, a, axis);
      order.push_back(a);
      pixels.push_back(a + 1);
      shape.push_back(axis.count);
    }
    order.insert(order.end(), pixels.begin(), pixels.end());
    order.push_back(x.rank() - 1);
    shape.push_back(numel(sizes) * x.size(-1));
    return reshape(transpose(x, order), shape);
  });
}

DTensor image::rgb_to_grayscale(const DTensor& images, const std::string& data_format) {
  const char* const op = "image::rgb_to_grayscale";
  const at::ScalarType dtype = images.dtype();
  return for_images(op, images, data_format, 2, [&](const DTensor& x) {
    const int64_t channels = x.size(-1);
    if (channels == 1) return x;
    if (channels != 3) {
      throw ShapeError(op, "images have three channels, or one", str(channels),
                       "give it images in RGB");
    }
    const DTensor wide = at::isFloatingType(dtype) ? widened(x) : cast(x, at::kFloat);
    const std::vector<DTensor> rgb = split(wide, 3, 3);
    return cast(rgb[0] * 0.2989 + rgb[1] * 0.587 + rgb[2] * 0.114, dtype);
  });
}

DTensor image::pad_images(const DTensor& images, const PadImagesOptions& options) {
  const char* const op = "image::pad_images";
  return for_images(op, images, options.data_format, 2, [&](const DTensor& x) {
    const auto [top, bottom] = sides(op, vertical, options.top_padding, options.bottom_padding,
                                     options.target_height, x.size(1));
    const auto [left, right] = sides(op, horizontal, options.left_padding, options.right_padding,
                                     options.target_width, x.size(2));
    const DTensor rows = top + bottom == 0 ? x : pad(x, 1, top, bottom);
    return left + right == 0 ? rows : pad(rows, 2, left, right);
  });
}

DTensor image::crop_images(const DTensor& images, const CropImagesOptions& options) {
  const char* const op = "image::crop_images";
  return for_images(op, images, options.data_format, 2, [&](const DTensor& x) {
    const auto [top, bottom] = sides(op, vertical, options.top_cropping, options.bottom_cropping,
                                     x.size(1), options.target_height);
    const auto [left, right] = sides(op, horizontal, options.left_cropping, options.right_cropping,
                                     x.size(2), options.target_width);
    const DTensor rows = slice(x, 1, top, x.size(1) - top - bottom);
    return slice(rows, 2, left, x.size(2) - left - right);
  });
}

}  // namespace tessera::ops
