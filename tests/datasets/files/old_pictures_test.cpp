#include <string>
#include <vector>

#include <tessera/datasets/files/image.hpp>
#include <tessera/framework/base/error.hpp>

#include "tests/support/error_line.hpp"
#include "tests/support/zip_file.hpp"

namespace old_pictures_test {

using namespace tessera;
using namespace tessera::detail;
using namespace std::string_literals;
using Catch::Matchers::Contains;
using Bytes = std::vector<uint8_t>;

namespace {

std::string number(uint64_t value, int bytes) { return test::put_number(value, bytes); }

Image decoded(const std::string& bytes, int64_t channels = 3) {
  return decode_image({.bytes = bytes, .channels = channels, .file = "case"});
}

std::string decode_error(const std::string& bytes) {
  return test::error_line([&] { decoded(bytes); });
}

/// Returns a BMP file; `rest`: masks or the palette, and then the rows.
std::string bmp(int64_t width, int64_t height, uint64_t bits, const std::string& palette,
                const std::string& rows, uint64_t header = 40, uint64_t compression = 0) {
  const std::string head = number(header, 4) + number(static_cast<uint32_t>(width), 4) +
                           number(static_cast<uint32_t>(height), 4) + number(1, 2) +
                           number(bits, 2) + number(compression, 4) + std::string(20, '\0');
  const uint64_t data = 14 + head.size() + palette.size();
  return "BM" + number(data + rows.size(), 4) + number(0, 4) + number(data, 4) + head + palette +
         rows;
}

/// Returns the codes of pixels of 2 bits, each after a code that clears the table: 3 bits each.
std::string uncompressed(const std::string& pixels) {
  uint32_t buffer = 0, held = 0;
  std::string codes;
  for (const char pixel : pixels) {
    for (const uint32_t code : {4U, static_cast<uint32_t>(pixel)}) {
      buffer |= code << held;
      for (held += 3; held >= 8; held -= 8, buffer >>= 8) codes += static_cast<char>(buffer);
    }
  }
  codes += static_cast<char>(buffer);
  return "\2" + number(codes.size(), 1) + codes + "\0"s;
}

/// Returns a GIF file of 4 colours, whose frame begins at (left, top).
std::string gif(uint64_t width, uint64_t height, uint64_t left, uint64_t top, uint64_t frame_width,
                uint64_t frame_height, bool interlaced, const std::string& data) {
  return "GIF89a" + number(width, 2) + number(height, 2) + "\x81\0\0"s +
         "\x0A\x0B\x0C\x14\x15\x16\x1E\x1F\x20\x28\x29\x2A" +  // colours 10, 20, 30 and 40
         "\x21\xFE\3abc\0"s + "\x21\xF9\4\1\0\0\2\0"s +        // a comment; colour 2 is transparent
         "\x2C" + number(left, 2) + number(top, 2) + number(frame_width, 2) +
         number(frame_height, 2) + (interlaced ? "\x40" : "\0"s) + data + ";";
}

/// A picture that a browser's encoder wrote, with the pixels of its first three rows.
const std::string sample =
    "GIF89a\x0A\0\x0A\0\x91\0\0\xFF\xFF\xFF\xFF\0\0\0\0\xFF\0\0\0\x21\xF9\4\0\0\0\0\0\x2C\0\0\0\0"
    "\x0A\0\x0A\0\0\2\x16\x8C\x2D\x99\x87\x2A\x1C\xDC\x33\xA0\2\x75\xEC\x95\xFA\xA8\xDE\x60\x8C\4"
    "\x91\x4C\1\0;"s;

}  // namespace

TEST_CASE("BMP files of each depth are decoded, bottom row first or top row first") {
  // Rows are padded to four bytes; pixels are blue, green, red.
  const std::string rows = "\1\2\3\4\5\6\0\0"s + "\7\x08\x09\x0A\x0B\x0C\0\0"s;
  const Image up = decoded(bmp(2, 2, 24, "", rows));
  CHECK((up.height == 2 && up.width == 2 && up.channels == 3));
  CHECK(up.pixels == Bytes{9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4});
  CHECK(decoded(bmp(2, -2, 24, "", rows)).pixels == Bytes{3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10});
  CHECK(decoded(bmp(1, 1, 24, "", "\x64\x64\x64\0"s), 1).pixels == Bytes{100});
  const std::string pixel = "\1\2\3\4";
  CHECK(decoded(bmp(1, 1, 32, "", pixel), 4).pixels == Bytes{3, 2, 1, 255});
  const std::string masks = number(0xFF0000, 4) + number(0xFF00, 4) + number(0xFF, 4);
  CHECK(decoded(bmp(1, 1, 32, masks, pixel, 40, 3), 4).pixels == Bytes{3, 2, 1, 255});
  CHECK(decoded(bmp(1, 1, 32, masks + number(0xFF000000, 4), pixel, 56, 3), 4).pixels ==
        Bytes{3, 2, 1, 4});
  std::string palette;
  for (int i = 0; i < 256; ++i) palette += std::string(3, static_cast<char>(i)) + '\0';
  CHECK(decoded(bmp(3, 1, 8, palette, "\x05\xC8\0\0"s), 1).pixels == Bytes{5, 200, 0});
  CHECK(decoded(bmp(3, 1, 4, palette.substr(0, 64), "\x5A\xF0\0\0"s), 1).pixels ==
        Bytes{5, 10, 15});
  CHECK(decoded(bmp(3, 1, 1, palette.substr(0, 8), "\xA0\0\0\0"s), 1).pixels == Bytes{1, 0, 1});
}

TEST_CASE("the first frame of a GIF file is decoded, interlaced or not") {
  const Image image = decoded(sample);
  REQUIRE((image.height == 10 && image.width == 10));
  const Bytes red{255, 0, 0}, blue{0, 0, 255}, white{255, 255, 255};
  const auto pixel = [&](size_t y, size_t x) {
    const auto at = image.pixels.begin() + static_cast<std::ptrdiff_t>(3 * (10 * y + x));
    return Bytes(at, at + 3);
  };
  for (size_t y = 0; y < 10; ++y) {
    for (size_t x = 0; x < 10; ++x) {
      const bool middle = y >= 3 && y < 7 && x >= 3 && x < 7;
      CAPTURE(y, x);
      CHECK(pixel(y, x) == (middle ? white : (y < 5) == (x < 5) ? red : blue));
    }
  }
  const std::string pixels = "\0\1\2\3\0\1\2\3\1"s;  // one column of nine rows
  CHECK(decoded(gif(1, 9, 0, 0, 1, 9, false, uncompressed(pixels)), 1).pixels ==
        Bytes{11, 21, 31, 41, 11, 21, 31, 41, 21});
  // Rows come in the order 0, 8; 4; 2, 6; 1, 3, 5, 7.
  CHECK(decoded(gif(1, 9, 0, 0, 1, 9, true, uncompressed(pixels)), 1).pixels ==
        Bytes{11, 21, 41, 31, 31, 41, 11, 21, 21});
  // A frame inside the picture: the rest is black and transparent.
  CHECK(decoded(gif(2, 2, 1, 0, 1, 2, false, uncompressed("\1\2")), 4).pixels ==
        Bytes{0, 0, 0, 0, 20, 21, 22, 255, 0, 0, 0, 0, 30, 31, 32, 0});
}

TEST_CASE("damaged BMP and GIF files are refused or read, at every length and byte") {
  const std::string files[] = {bmp(3, 2, 24, "", std::string(24, '\7')),
                               bmp(3, 1, 8, std::string(1024, '\1'), "\1\2\3\0"s),
                               gif(2, 2, 0, 0, 2, 2, true, uncompressed("\0\1\2\3"s)), sample};
  for (const std::string& bytes : files) {
    CAPTURE(bytes.substr(0, 2), bytes.size());
    CHECK(decode_error(bytes) == "no error");
    // The end mark of a GIF file is not read, nor the empty block before it.
    const size_t needed = bytes.size() - (bytes[0] == 'G' ? 4 : 0);
    for (size_t length = 0; length < needed; ++length) {
      CAPTURE(length);
      CHECK_THAT(decode_error(bytes.substr(0, length)), Contains("[case] "));
    }
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
        const std::string error = decode_error(changed);
        CHECK((error == "no error" || error.starts_with("[case] ")));
      }
    }
  }
  CHECK_THAT(decode_error(bmp(1, 1, 16, "", "\0\0\0\0"s)),
             Contains("a whole BMP file of 1, 4, 8, 24 or 32 bits. Received: 16 bits"));
  CHECK_THAT(decode_error(bmp(60000, 60000, 24, "", "")), Contains("at most 134217728 pixels"));
  CHECK_THAT(decode_error(gif(60000, 60000, 0, 0, 1, 1, false, "")), Contains("134217728 pixels"));
  CHECK_THAT(decode_error(gif(2, 2, 1, 0, 2, 2, false, uncompressed("\0\1\2\3"s))),
             Contains("a frame outside it"));
}

}  // namespace old_pictures_test
