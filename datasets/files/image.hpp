#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// A picture's pixels, row by row from the top, their channels together.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;  ///< 1: grey, 3: RGB, 4: RGB and alpha
  std::vector<uint8_t> pixels;
};

/// The most pixels of a picture that is read, at 4 bytes each: half a gigabyte.
constexpr int64_t most_pixels = int64_t{1} << 27;

/// A picture as it is in a file, and what is to be made of it.
struct EncodedImage {
  std::string_view bytes;
  int64_t channels = 3;   ///< of the pixels: 1, 3 or 4
  std::string file = {};  ///< names it in errors
  int64_t most = most_pixels;
};

/// Endings of the files that are pictures, in lower case: ".jpg" and its like, and those that Keras
/// has too.
std::span<const std::string_view> image_endings();
/// Throws FileError for the ending of a format that is not read here, BMP or GIF.
void check_image_name(const std::string& path);

/// Decodes a JPEG, PNG or WebP file, known by its first bytes, into its channels: 1 of the
/// luminance, 3, or 4, alpha being 255 where there is none. Throws FileError for what is none of
/// them, truncated or damaged, and for one of too many pixels before their memory is taken.
Image decode_image(const EncodedImage& encoded);

/// decode_image of a file. Throws FileError if it cannot be read, or has more than a gigabyte.
Image read_image(const std::string& path, int64_t channels);

/// Writes a .png, .jpg or .jpeg file, by its name's ending, in one step; JPEG has no alpha. Throws
/// ConfigError for another ending, FileError if it cannot be written.
void write_image(const std::string& path, const Image& image);

/// Each decodes a file of its format.
Image decode_jpeg(const EncodedImage& encoded);
Image decode_png(const EncodedImage& encoded);
Image decode_webp(const EncodedImage& encoded);
/// Each gives the bytes of a file.
std::string encode_jpeg(const Image& image, const std::string& file);
std::string encode_png(const Image& image, const std::string& file);

/// Zeros of these extents. Throws FileError naming the file for more pixels than it may have, or
/// than so few bytes can be the picture of.
Image blank_image(const EncodedImage& encoded, uint64_t height, uint64_t width, int64_t channels);
/// Throws FileError for a picture that cannot be decoded.
[[noreturn]] void fail_image(const std::string& file, const std::string& format,
                             const std::string& reason);
/// Throws ConfigError: the library was built without a format, for want of a package.
[[noreturn]] void fail_without(const std::string& file, const std::string& format,
                               const std::string& package);

/// The luminance of RGB pixels, as Pillow has it, in a picture of one channel.
Image as_grey(const Image& rgb);

}  // namespace tessera::detail
