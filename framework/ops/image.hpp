#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/ops/affine_transform.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

/// The functions of keras.ops.image. Images are (batch, height, width, channels) or (height, width,
/// channels), with data_format "channels_first" (batch, channels, height, width) or (channels,
/// height, width). Throw ShapeError for another rank, ConfigError for an unknown data_format.
namespace tessera::ops::image {

using ops::affine_transform;

/// The options of resize().
struct ResizeOptions {
  /// "nearest", "bilinear", "bicubic", "lanczos3" or "lanczos5".
  std::string interpolation = "bilinear";
  bool antialias = false;             ///< smooths images when downsizing; not with "nearest"
  bool crop_to_aspect_ratio = false;  ///< centre-crops to the target's aspect ratio first
  bool pad_to_aspect_ratio = false;   ///< pads to the target's aspect ratio first
  double fill_value = 0;              ///< value that pad_to_aspect_ratio adds
  std::string data_format = "";       ///< "channels_last" (default) or "channels_first"
};

/// Resizes images to a height and width, one axis at a time, as the layer Resizing does
/// (keras.ops.image.resize). Keeps the dtype: integers are rounded, float16 and bfloat16 computed
/// in float32 (Keras on TensorFlow returns float32 for both). Shards of the height or width fetch
/// the pixels that they read; with "nearest", these axes leave a partial sum. Throws ShapeError for
/// a size below 1, ConfigError for an unknown interpolation, or cropping and padding at once.
DTensor resize(const DTensor& images, const std::array<int64_t, 2>& size,
               const ResizeOptions& options = {});

/// The options of extract_patches().
struct ExtractPatchesOptions {
  /// Distances between patches, one for each axis or one for all (default: the patches' size).
  std::vector<int64_t> strides = {};
  /// Distances between the pixels of a patch, one for each axis or one for all.
  std::vector<int64_t> dilation_rate = {1};
  std::string padding = "valid";  ///< "valid", or "same": patches beyond the edges have zeros
  std::string data_format = "";   ///< "channels_last" (default) or "channels_first"
};

/// Returns patches of images, or of volumes (batch, depth, height, width, channels) if `size` has
/// three extents: (b, h, w, c) -> (b, rows, columns, size[0] · size[1] · c), the pixels of a patch
/// in row-major order (keras.ops.image.extract_patches). Any dtype; differentiable. Where patches
/// neither overlap nor leave gaps this is a reshape; otherwise an axis is gathered by index, and if
/// it is sharded leaves a partial sum. Throws ShapeError for a patch larger than the image,
/// ConfigError for options that do not fit.
DTensor extract_patches(const DTensor& images, const std::vector<int64_t>& size,
                        const ExtractPatchesOptions& options = {});

/// Returns 0.2989 red + 0.587 green + 0.114 blue: three channels -> one; images of one channel as
/// they are (keras.ops.image.rgb_to_grayscale). Keeps the dtype: integers are computed in float32
/// and truncated, float16 and bfloat16 in float32 and rounded once. Sharded channels are resharded
/// first. Throws ShapeError for another number of channels.
DTensor rgb_to_grayscale(const DTensor& images, const std::string& data_format = "");

/// The options of pad_images(): two of top, bottom and height, and two of left, right and width.
struct PadImagesOptions {
  std::optional<int64_t> top_padding = {};     ///< rows added above
  std::optional<int64_t> left_padding = {};    ///< columns added on the left
  std::optional<int64_t> bottom_padding = {};  ///< rows added below
  std::optional<int64_t> right_padding = {};   ///< columns added on the right
  std::optional<int64_t> target_height = {};   ///< height of the result
  std::optional<int64_t> target_width = {};    ///< width of the result
  std::string data_format = "";                ///< "channels_last" (default) or "channels_first"
};

/// Pads images with zeros (keras.ops.image.pad_images). Throws ConfigError unless two of the three
/// options of each axis are given, ShapeError if that makes an image smaller.
DTensor pad_images(const DTensor& images, const PadImagesOptions& options);

/// The options of crop_images(): two of top, bottom and height, and two of left, right and width.
struct CropImagesOptions {
  std::optional<int64_t> top_cropping = {};     ///< rows removed above
  std::optional<int64_t> left_cropping = {};    ///< columns removed on the left
  std::optional<int64_t> bottom_cropping = {};  ///< rows removed below
  std::optional<int64_t> right_cropping = {};   ///< columns removed on the right
  std::optional<int64_t> target_height = {};    ///< height of the result
  std::optional<int64_t> target_width = {};     ///< width of the result
  std::string data_format = "";                 ///< "channels_last" (default) or "channels_first"
};

/// Crops images (keras.ops.image.crop_images). Throws ConfigError unless two of the three options
/// of each axis are given, ShapeError if the result is not inside the images.
DTensor crop_images(const DTensor& images, const CropImagesOptions& options);

}  // namespace tessera::ops::image
