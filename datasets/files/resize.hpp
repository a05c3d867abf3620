#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/datasets/files/image.hpp>

namespace tessera::detail {

/// A rectangle of a picture's pixels.
struct ImagePart {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
};

/// How pixels between those of a picture are computed; a pixel's centre is at 1/2.
struct Resizing {
  std::string interpolation = "bilinear";
  /// Whether a smaller picture has the mean of all pixels that fall on one of its own, as Pillow
  /// makes it, and not only of the nearest, as tf.image.resize does.
  bool antialias = false;
};

/// "bilinear", "nearest", "bicubic", "area", "lanczos3" and on: what tf.image.resize knows.
std::span<const std::string> tf_interpolations();
/// "nearest", "bilinear", "bicubic", "lanczos", "box", "hamming": what Pillow knows.
std::span<const std::string> pillow_interpolations();

/// A part of a picture brought to height x width; pixels of all channels go to `out`, row by row,
/// those of a row `row_step` numbers behind those of the row above.
void resize_image(const Image& image, const ImagePart& part, int64_t height, int64_t width,
                  const Resizing& how, float* out, int64_t row_step);

}  // namespace tessera::detail
