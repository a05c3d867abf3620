#include <tessera/datasets/files/image.hpp>

#include <algorithm>
#include <array>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr uint64_t max_image_bytes = uint64_t{1} << 30;
// Deflate expands a byte to at most 1032, each of up to 8 pixels. Small pictures of a single colour
// may exceed this ratio.
constexpr uint64_t max_pixels_per_byte = 16384;
constexpr uint64_t min_pixel_limit = uint64_t{1} << 20;

bool has_ending(std::string path, std::string_view ending) {
  std::transform(path.begin(), path.end(), path.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return path.ends_with(ending);
}

}  // namespace

std::span<const std::string_view> image_endings() {
  static constexpr std::array<std::string_view, 6> endings{".jpg",  ".jpeg", ".png",
                                                           ".webp", ".bmp",  ".gif"};
  return endings;
}

Image decode_image(const EncodedImage& encoded) {
  const std::string_view bytes = encoded.bytes;
  if (bytes.starts_with("\xFF\xD8\xFF")) return decode_jpeg(encoded);
  if (bytes.starts_with("\x89PNG\r\n\x1A\n")) return decode_png(encoded);
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) {
    return decode_webp(encoded);
  }
  if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) return decode_gif(encoded);
  if (bytes.starts_with("BM")) return decode_bmp(encoded);
  throw FileError(encoded.file, "a picture: a JPEG, PNG, WebP, BMP or GIF file", "other bytes",
                  "convert it, or take it out of the folder");
}

Image read_image(const std::string& path, int64_t channels) {
  InputFile file(path);
  if (file.stored_size() > max_image_bytes) {
    fail_image(path, "picture", str("more than ", max_image_bytes, " bytes"));
  }
  std::string bytes(file.stored_size(), '\0');
  bytes.resize(file.read(std::as_writable_bytes(std::span(bytes))));
  return decode_image({.bytes = bytes, .channels = channels, .file = path});
}

void write_image(const std::string& path, const Image& image) {
  if (has_ending(path, ".png")) return write_file_atomically(path, encode_png(image, path));
  if (has_ending(path, ".jpg") || has_ending(path, ".jpeg")) {
    return write_file_atomically(path, encode_jpeg(image, path));
  }
  throw ConfigError(path, "a name that ends in .png, .jpg or .jpeg", in_quotes(path),
                    "choose one of these formats");
}

Image zero_image(const EncodedImage& encoded, uint64_t height, uint64_t width, int64_t channels) {
  const auto limit = static_cast<uint64_t>(encoded.max_pixels);
  if (height == 0 || width == 0 || height > limit || width > limit / height) {
    throw FileError(encoded.file, str("a picture of at most ", limit, " pixels"),
                    str(height, " x ", width), "scale it down first");
  }
  if (height * width > min_pixel_limit + encoded.bytes.size() * max_pixels_per_byte) {
    throw FileError(encoded.file, "a plausible number of pixels for the file's size",
                    str(height, " x ", width, " in ", encoded.bytes.size(), " bytes"),
                    "get the file again, or take it out of the folder");
  }
  Image image{static_cast<int64_t>(height), static_cast<int64_t>(width), channels, {}};
  image.pixels.resize(height * width * static_cast<uint64_t>(channels));
  return image;
}

void fail_image(const std::string& file, const std::string& format, const std::string& reason) {
  throw FileError(file, "a whole " + format, one_line(reason),
                  "get the file again, or take it out of the folder");
}

void fail_without(const std::string& file, const std::string& format, const std::string& package) {
  throw ConfigError(file, "a library built with " + format, "one built without it",
                    str("install ", package, " and build again"));
}

Image as_grey(const Image& rgb) {
  Image grey{rgb.height, rgb.width, 1, {}};
  grey.pixels.resize(rgb.pixels.size() / 3);
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    const uint8_t* at = &rgb.pixels[3 * i];
    // 0.299, 0.587 and 0.114 in units of 1 / 65536.
    grey.pixels[i] =
        static_cast<uint8_t>((at[0] * 19595U + at[1] * 38470U + at[2] * 7471U + 32768U) >> 16);
  }
  return grey;
}

}  // namespace tessera::detail
