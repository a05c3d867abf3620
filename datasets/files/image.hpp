#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// Decoded pixels: row-major from the top, channels last.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;  ///< 1: grey, 3: RGB, 4: RGB and alpha
  std::vector<uint8_t> pixels;
};

/// Maximum number of pixels of a picture that is read: half a gigabyte at 4 bytes each.
constexpr int64_t max_image_pixels = int64_t{1} << 27;

/// The bytes of a picture file, and how to decode them.
struct EncodedImage {
  std::string_view bytes;
  int64_t channels = 3;                   ///< channels to decode to: 1, 3 or 4
  std::string file = {};                  ///< file name for errors
  int64_t max_pixels = max_image_pixels;  ///< maximum number of pixels
};

/// Returns the extensions of picture files that Keras lists, in lower case.
std::span<const std::string_view> image_endings();

/// Decodes a JPEG, PNG, WebP, BMP or GIF file (the first frame), recognized by its first bytes, to
/// 1 channel (luminance), 3, or 4 (alpha is 255 if the file has none). Throws FileError for another
/// format, a truncated or damaged file, and too many pixels; the latter before their memory is
/// allocated.
Image decode_image(const EncodedImage& encoded);

/// Reads and decodes a picture file. Throws FileError if it cannot be read, or is larger than 1
/// GiB.
Image read_image(const std::string& path, int64_t channels);

/// Writes a .png, .jpg or .jpeg file, by its extension, atomically; JPEG drops alpha. Throws
/// ConfigError for another extension, FileError if it cannot be written.
void write_image(const std::string& path, const Image& image);

/// Decodes a file of the named format.
Image decode_jpeg(const EncodedImage& encoded);
Image decode_png(const EncodedImage& encoded);
Image decode_webp(const EncodedImage& encoded);
Image decode_bmp(const EncodedImage& encoded);
Image decode_gif(const EncodedImage& encoded);
/// Returns the bytes of a file of the named format.
std::string encode_jpeg(const Image& image, const std::string& file);
std::string encode_png(const Image& image, const std::string& file);

/// Returns a zero image of this size. Throws FileError naming the file if it has more pixels than
/// allowed, or more than a file of its size can encode.
Image zero_image(const EncodedImage& encoded, uint64_t height, uint64_t width, int64_t channels);
/// Throws the FileError for a picture that cannot be decoded.
[[noreturn]] void fail_image(const std::string& file, const std::string& format,
                             const std::string& reason);
/// Throws the ConfigError for a format that the library was built without, as `package` was
/// missing.
[[noreturn]] void fail_without(const std::string& file, const std::string& format,
                               const std::string& package);

/// Converts RGB pixels to luminance, as Pillow does, in a picture of one channel.
Image as_grey(const Image& rgb);

}  // namespace tessera::detail
