#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/datasets/files/image.hpp>

namespace tessera::detail {

/// A rectangle of a picture's pixels.
struct ImageRect {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
};

/// The resampling method; pixel centres are at 1/2.
struct ResizeOptions {
  std::string interpolation = "bilinear";  ///< one of tf_interpolations()
  /// Whether downsampling averages all pixels that an output pixel covers, as Pillow does, rather
  /// than only the nearest ones, as tf.image.resize does.
  bool antialias = false;
};

/// Returns the methods of tf.image.resize: "bilinear", "nearest", "bicubic", "area", "lanczos3" ...
std::span<const std::string> tf_interpolations();
/// Returns the methods of Pillow: "nearest", "bilinear", "bicubic", "lanczos", "box", "hamming".
std::span<const std::string> pillow_interpolations();

/// Resizes a rectangle of a picture to height x width, into `out` (height, width, channels) with a
/// row stride of `row_step` elements.
void resize_image(const Image& image, const ImageRect& rect, int64_t height, int64_t width,
                  const ResizeOptions& options, float* out, int64_t row_step);

}  // namespace tessera::detail
