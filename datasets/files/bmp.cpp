#include <tessera/datasets/files/image.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

/// The header of a BMP file (Windows, versions 3 to 5).
struct BmpHeader {
  uint32_t data, size, compression, colours;
  int64_t width, height;  ///< negative height: rows from the top
  uint32_t bits;
  bool has_alpha = false;
};

uint32_t little_endian(std::string_view bytes, size_t at, size_t count, const std::string& file) {
  if (at > bytes.size() || count > bytes.size() - at)
    fail_image(file, "BMP file", "it is cut short");
  uint32_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

BmpHeader read_bmp_header(const EncodedImage& encoded) {
  const auto number = [&](size_t at, size_t count) {
    return little_endian(encoded.bytes, at, count, encoded.file);
  };
  BmpHeader header{.data = number(10, 4),
                   .size = number(14, 4),
                   .compression = number(30, 4),
                   .colours = number(46, 4),
                   .width = static_cast<int32_t>(number(18, 4)),
                   .height = static_cast<int32_t>(number(22, 4)),
                   .bits = number(28, 2)};
  const uint32_t bits = header.bits;
  const bool has_palette = bits == 1 || bits == 4 || bits == 8;
  bool known =
      header.size >= 40 && header.compression == 0 && (has_palette || bits == 24 || bits == 32);
  if (header.size >= 40 && header.compression == 3 && bits == 32) {
    known = number(54, 4) == 0xFF0000 && number(58, 4) == 0xFF00 && number(62, 4) == 0xFF;
    header.has_alpha = header.size >= 56 && number(66, 4) == 0xFF000000;
  }
  if (!known) {
    fail_image(encoded.file, "BMP file of 1, 4, 8, 24 or 32 bits",
               str(bits, " bits with compression ", header.compression));
  }
  if (header.colours == 0 && has_palette) header.colours = 1U << bits;
  if (!has_palette) header.colours = 0;
  return header;
}

}  // namespace

Image decode_bmp(const EncodedImage& encoded) {
  const BmpHeader header = read_bmp_header(encoded);
  const std::string_view bytes = encoded.bytes;
  const auto height = static_cast<uint64_t>(header.height < 0 ? -header.height : header.height);
  Image image =
      zero_image(encoded, height, header.width < 0 ? 0 : static_cast<uint64_t>(header.width),
                 encoded.channels == 4 ? 4 : 3);
  const uint64_t width = static_cast<uint64_t>(image.width),
                 row_bytes = (width * header.bits + 31) / 32 * 4;
  const uint64_t palette = 14 + uint64_t{header.size};
  if (header.data > bytes.size() || row_bytes * height > bytes.size() - header.data ||
      palette > bytes.size() || uint64_t{4} * header.colours > bytes.size() - palette) {
    fail_image(encoded.file, "BMP file", "it is cut short");
  }
  uint8_t* pixel = image.pixels.data();
  for (uint64_t y = 0; y < height; ++y) {
    const uint64_t row = header.data + row_bytes * (header.height < 0 ? y : height - 1 - y);
    for (uint64_t x = 0; x < width; ++x, pixel += image.channels) {
      uint64_t at = row + x * header.bits / 8;
      if (header.colours > 0) {
        const uint64_t shift = 8 - header.bits - x * header.bits % 8;
        const uint32_t colour = static_cast<uint32_t>(static_cast<uint8_t>(bytes[at]) >> shift) &
                                ((1U << header.bits) - 1);
        if (colour >= header.colours)
          fail_image(encoded.file, "BMP file", "a colour that it lacks");
        at = palette + uint64_t{4} * colour;
      }
      // Stored as blue, green, red and alpha.
      for (size_t c = 0; c < 3; ++c) pixel[c] = static_cast<uint8_t>(bytes[at + 2 - c]);
      if (image.channels == 4)
        pixel[3] = header.has_alpha ? static_cast<uint8_t>(bytes[at + 3]) : 255;
    }
  }
  return encoded.channels == 1 ? as_grey(image) : image;
}

}  // namespace tessera::detail
