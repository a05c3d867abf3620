#include <tessera/datasets/files/image.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

namespace tessera::detail {
namespace {

/// Reads a GIF file byte by byte.
class GifReader {
 public:
  explicit GifReader(const EncodedImage& encoded) : encoded_(encoded) {}

  [[noreturn]] void fail(const std::string& reason) const {
    fail_image(encoded_.file, "GIF file", reason);
  }
  std::string_view take(size_t count) {
    if (count > encoded_.bytes.size() - at_) fail("it is cut short");
    at_ += count;
    return encoded_.bytes.substr(at_ - count, count);
  }
  uint32_t byte() { return static_cast<uint8_t>(take(1)[0]); }
  uint32_t pair() {
    const uint32_t low = byte();
    return low | byte() << 8;
  }
  /// Reads a palette if a descriptor's flags say that there is one.
  std::string_view palette(uint32_t flags) {
    return flags & 0x80 ? take(size_t{3} << ((flags & 7) + 1)) : std::string_view();
  }
  /// Reads blocks up to the empty one, and returns the first.
  std::string_view blocks() {
    const std::string_view first = take(byte());
    for (size_t size = first.size(); size > 0; take(size)) size = byte();
    return first;
  }
  std::string indices(size_t count);

 private:
  const EncodedImage& encoded_;
  size_t at_ = 0;
};

/// Reads colour numbers, which are compressed by LZW with codes of growing width.
std::string GifReader::indices(size_t count) {
  const uint32_t first_bits = byte() + 1;
  if (first_bits < 2 || first_bits > 9) fail("an invalid code size");
  const uint32_t clear = 1U << (first_bits - 1), none = 4096;
  std::array<uint16_t, 4096> prefix{};
  std::array<char, 4096> suffix{};
  uint32_t bits = first_bits, next = clear + 2, previous = none, buffer = 0, held = 0, left = 0;
  std::string out;
  while (out.size() < count) {
    for (; held < bits; held += 8, --left) {
      if (left == 0) left = byte();
      if (left == 0) fail("too few pixels");
      buffer |= byte() << held;
    }
    const uint32_t code = buffer & ((1U << bits) - 1);
    buffer >>= bits;
    held -= bits;
    if (code == clear) {
      bits = first_bits;
      next = clear + 2;
      previous = none;
      continue;
    }
    if (code == clear + 1 || code > next || (code >= clear && previous == none))
      fail("damaged pixels");
    // A code stands for the pixels of its prefix and one more; the next one for those of the code
    // before and their first again.
    const auto begin = static_cast<std::ptrdiff_t>(out.size());
    uint32_t at = code == next ? previous : code;
    for (; at >= clear; at = prefix[at]) out += suffix[at];
    out += static_cast<char>(at);
    std::reverse(out.begin() + begin, out.end());
    const char first = static_cast<char>(at);
    if (code == next) out += first;
    if (previous != none && next < none) {
      prefix[next] = static_cast<uint16_t>(previous);
      suffix[next] = first;
      if (++next == 1U << bits && bits < 12) ++bits;
    }
    previous = code;
  }
  out.resize(count);
  return out;
}

/// Returns the row that row `i` of an interlaced picture is.
uint64_t interlaced_row(uint64_t i, uint64_t height) {
  constexpr std::array<std::pair<uint64_t, uint64_t>, 4> passes{{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  for (const auto& [begin, step] : passes) {
    const uint64_t rows = height > begin ? (height - begin + step - 1) / step : 0;
    if (i < rows) return begin + i * step;
    i -= rows;
  }
  return 0;
}

}  // namespace

Image decode_gif(const EncodedImage& encoded) {
  GifReader reader(encoded);
  reader.take(6);  // the magic
  const uint64_t width = reader.pair(), height = reader.pair();
  const uint32_t flags = reader.byte();
  reader.take(2);  // the background's colour and the aspect ratio
  std::string_view palette = reader.palette(flags);
  Image image = zero_image(encoded, height, width, encoded.channels == 4 ? 4 : 3);
  std::optional<uint8_t> transparent;
  for (uint32_t kind = reader.byte(); kind != 0x2C; kind = reader.byte()) {
    if (kind != 0x21) reader.fail("no picture");
    const bool is_control = reader.byte() == 0xF9;
    const std::string_view block = reader.blocks();
    if (is_control && block.size() >= 4 && block[0] & 1)
      transparent = static_cast<uint8_t>(block[3]);
  }
  const uint64_t left = reader.pair(), top = reader.pair();
  const uint64_t frame_width = reader.pair(), frame_height = reader.pair();
  const uint32_t frame_flags = reader.byte();
  if (frame_flags & 0x80) palette = reader.palette(frame_flags);
  if (left + frame_width > width || top + frame_height > height) reader.fail("a frame outside it");
  const std::string indices = reader.indices(frame_width * frame_height);
  for (uint64_t i = 0; i < indices.size(); ++i) {
    const auto colour = static_cast<uint8_t>(indices[i]);
    if (size_t{3} * colour + 3 > palette.size()) reader.fail("a colour that it lacks");
    const uint64_t row = i / frame_width;
    const uint64_t y = top + (frame_flags & 0x40 ? interlaced_row(row, frame_height) : row);
    uint8_t* pixel =
        &image.pixels[(y * width + left + i % frame_width) * static_cast<uint64_t>(image.channels)];
    for (size_t c = 0; c < 3; ++c) pixel[c] = static_cast<uint8_t>(palette[size_t{3} * colour + c]);
    if (image.channels == 4) pixel[3] = transparent == colour ? 0 : 255;
  }
  return encoded.channels == 1 ? as_grey(image) : image;
}

}  // namespace tessera::detail
