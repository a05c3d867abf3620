#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Height and width of images.
struct ImageSize {
  int64_t height = 0, width = 0;
};

/// The largest part of images of one size that has the aspect ratio of another.
ImageSize part_of_aspect(ImageSize images, ImageSize size);
/// It in the middle of images (batch, height, width, channels).
DTensor cropped_to_aspect(const DTensor& images, ImageSize size);
/// The images with as much of `value` on opposite sides as gives them the aspect ratio of a size.
DTensor padded_to_aspect(const DTensor& images, ImageSize size, double value);
/// The images in a size, by "nearest" or a name of interpolations().
DTensor resized(const DTensor& images, ImageSize size, const std::string& interpolation,
                bool antialias = false);

}  // namespace tessera::detail
