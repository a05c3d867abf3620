#pragma once

#include <string>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

/// Color operations on images (batch, height, width, channels).
namespace tessera::detail {

/// Maps values linearly from one range to another; unchanged if the ranges are equal.
DTensor in_range(const DTensor& images, const std::vector<double>& from,
                 const std::vector<double>& to);

/// Throws ShapeError unless there are three channels.
void check_rgb(const std::string& where, const Shape& images);

/// Converts RGB images to grayscale, (batch, height, width, 1); images of one channel are
/// unchanged.
DTensor gray_of(const DTensor& images);

/// Hue and saturation in [0, 1] and value, each (batch, height, width, 1).
struct Hsv {
  DTensor hue, saturation, value;
};
Hsv hsv_of(const DTensor& rgb);
DTensor rgb_of(const Hsv& hsv);

}  // namespace tessera::detail
