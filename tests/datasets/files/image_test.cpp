#include <tessera/datasets/files/image.hpp>

#include <sys/resource.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/zip_file.hpp"

namespace image_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::string_literals;

namespace {

std::string picture(const std::string& name) {
  return test::read_file(test::golden_path("pictures/" + name));
}

std::string decode_error(const std::string& bytes, int64_t channels = 3) {
  return test::error_line(
      [&] { decode_image({.bytes = bytes, .channels = channels, .file = "case"}); });
}

/// Returns a chunk of a PNG file, with its length and checksum.
std::string chunk(const std::string& kind, const std::string& data) {
  const auto big = [](uint64_t value) {
    std::string bytes = test::put_number(value, 4);
    return std::string(bytes.rbegin(), bytes.rend());
  };
  return big(data.size()) + kind + data + big(test::crc(kind + data));
}

std::string png_of(uint32_t width, uint32_t height, const std::string& rest) {
  std::string extents;
  for (const uint32_t extent : {width, height}) {
    for (int shift = 24; shift >= 0; shift -= 8) extents += static_cast<char>(extent >> shift);
  }
  return "\x89PNG\r\n\x1A\n" + chunk("IHDR", extents + std::string("\x08\x02\0\0\0", 5)) + rest;
}

/// Returns the peak memory of this process in bytes.
int64_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace

TEST_CASE("of 16 bits of a PNG file the high byte is read, as in TensorFlow") {
  // A row of three grey pixels without a filter, in a block that is not compressed.
  const std::string row = "\0\x12\x34\x80\0\xFF\1"s;
  uint64_t sum = 1, sums = 0;
  for (const char byte : row) {
    sum += static_cast<uint8_t>(byte);
    sums += sum;
  }
  const std::string check = test::put_number(sums << 16 | sum, 4);
  const std::string data = "\x78\1\1"s + test::put_number(row.size(), 2) +
                           test::put_number(0xFFFF - row.size(), 2) + row +
                           std::string(check.rbegin(), check.rend());
  const std::string png = "\x89PNG\r\n\x1A\n" + chunk("IHDR", "\0\0\0\3\0\0\0\1\x10\0\0\0\0"s) +
                          chunk("IDAT", data) + chunk("IEND", "");
  using Pixels = std::vector<uint8_t>;
  CHECK(decode_image({.bytes = png, .channels = 1, .file = "case"}).pixels ==
        Pixels{0x12, 0x80, 0xFF});
  CHECK(decode_image({.bytes = png, .channels = 3, .file = "case"}).pixels ==
        Pixels{0x12, 0x12, 0x12, 0x80, 0x80, 0x80, 0xFF, 0xFF, 0xFF});
}

TEST_CASE("pictures written as PNG are read back exactly, as JPEG approximately") {
  const test::TempFolder folder;
  for (const int64_t channels : {1, 3, 4}) {
    CAPTURE(channels);
    Image image{5, 7, channels, {}};
    for (int64_t i = 0; i < 5 * 7 * channels; ++i) {
      image.pixels.push_back(static_cast<uint8_t>(100 + i % 3));
    }
    write_image(folder / "a.png", image);
    const Image same = read_image(folder / "a.png", channels);
    CHECK(same.height == 5);
    CHECK(same.width == 7);
    CHECK(same.channels == channels);
    CHECK(same.pixels == image.pixels);
    write_image(folder / "a.JPG", image);
    const Image about = read_image(folder / "a.JPG", channels);
    REQUIRE(about.pixels.size() == image.pixels.size());
    for (size_t i = 0; i < about.pixels.size(); ++i) {
      const bool alpha = channels == 4 && i % 4 == 3;
      CHECK(std::abs(about.pixels[i] - (alpha ? 255 : image.pixels[i])) <= 4);
    }
  }
  CHECK_THAT(test::error_line([&] {
               write_image(folder / "a.gif", Image{1, 1, 1, {0}});
             }),
             Contains("a.gif] a name that ends in .png, .jpg or .jpeg"));
}

TEST_CASE("a truncated picture is refused at every length; a damaged one is read or refused") {
  for (const std::string name : {"photo.jpg", "progressive.jpg", "inks.jpg", "colours.png",
                                 "palette.png", "lossy.webp", "lossless.webp"}) {
    CAPTURE(name);
    const std::string bytes = picture(name);
    CHECK(decode_error(bytes) == "no error");
    // A JPEG's last two bytes are only its end marker.
    const size_t needed = bytes.size() - (name.ends_with(".jpg") ? 2 : 0);
    for (size_t length = 0; length < needed; ++length) {
      CAPTURE(length);
      CHECK_THAT(decode_error(bytes.substr(0, length)), Contains("[case] "));
    }
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
      const std::string error = decode_error(changed);
      CHECK((error == "no error" || error.starts_with("[case] ")));
    }
  }
  CHECK_THAT(decode_error(picture("photo.jpg").substr(0, 700)),
             Contains("[case] a whole JPEG file. Received: Premature end of JPEG file."));
  CHECK_THAT(decode_error(picture("colours.png").substr(0, 100)),
             Contains("[case] a whole PNG file. Received: "));
}

TEST_CASE("excessively large pictures are refused before memory is allocated") {
  const int64_t before = peak_memory();
  CHECK_THAT(decode_error(png_of(60000, 60000, "")), Contains("[case] a "));
  CHECK_THAT(decode_error(png_of(60000, 60000, chunk("IDAT", "x"))),
             Contains("[case] a picture of at most 134217728 pixels. Received: 60000 x 60000."));
  CHECK_THAT(decode_error(png_of(0x7fffffff, 1, chunk("IDAT", "x"))), Contains("[case] a "));
  std::string jpeg = picture("photo.jpg");
  const size_t frame = jpeg.find("\xFF\xC0");
  REQUIRE(frame != std::string::npos);
  jpeg.replace(frame + 5, 4, "\xFF\xDC\xFF\xDC");
  CHECK_THAT(decode_error(jpeg), Contains("[case] a picture of at most 134217728 pixels. "
                                          "Received: 65500 x 65500."));
  // A JPEG of 961 bytes that claims 132 million pixels is refused too.
  jpeg.replace(frame + 5, 4, "\x2C\xDC\x2C\xDC");
  CHECK_THAT(decode_error(jpeg),
             Contains("[case] a plausible number of pixels for the file's size. Received: "
                      "11484 x 11484 in 961 bytes."));
  CHECK(peak_memory() - before < (64 << 20));
}

TEST_CASE("a file that is no picture is an error that says so") {
  CHECK_THAT(decode_error(""), Contains("[case] a picture: a JPEG, PNG, WebP, BMP or GIF file."));
  CHECK_THAT(decode_error("II*"), Contains("Received: other bytes."));
  CHECK_THAT(decode_error("\xFF\xD8\xFF"), Contains("[case] a whole JPEG file."));
  CHECK_THAT(decode_error("\x89PNG\r\n\x1A\n"), Contains("[case] a whole PNG file."));
  CHECK_THAT(decode_error(std::string("RIFF\0\0\0\0WEBP", 12)), Contains("[case] a whole WebP"));
  CHECK_THAT(test::error_line([] { read_image("/nonexistent.png", 3); }),
             Contains("/nonexistent.png]"));
}

}  // namespace image_test
