#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Height and width of images.
struct ImageSize {
  int64_t height = 0, width = 0;
};

/// Returns the size of the largest part of the images that has the aspect ratio of `size`.
ImageSize largest_crop(ImageSize images, ImageSize size);
/// Crops that part from the centre of images (batch, height, width, channels).
DTensor cropped_to_aspect(const DTensor& images, ImageSize size);
/// Pads images on opposite sides with `value` to the aspect ratio of `size`.
DTensor padded_to_aspect(const DTensor& images, ImageSize size, double value);
/// Resizes images by "nearest" or an interpolation of interpolations().
DTensor resized(const DTensor& images, ImageSize size, const std::string& interpolation,
                bool antialias = false);

}  // namespace tessera::detail
