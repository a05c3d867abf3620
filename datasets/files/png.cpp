#include <tessera/datasets/files/image.hpp>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <png.h>

namespace tessera::detail {
namespace {

struct PngReading {
  ~PngReading() { png_destroy_read_struct(&png, &info, nullptr); }

  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf jump_target{};
  char message[200] = "";
  std::string_view rest;  ///< unread bytes
  int64_t channels = 0;
  uint8_t* pixels = nullptr;
};

[[noreturn]] void leave_png(png_structp png, png_const_charp message) {
  auto* state = static_cast<PngReading*>(png_get_error_ptr(png));
  std::snprintf(state->message, sizeof state->message, "%s", message);
  std::longjmp(state->jump_target, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

void take_bytes(png_structp png, png_bytep out, size_t count) {
  auto* state = static_cast<PngReading*>(png_get_io_ptr(png));
  if (count > state->rest.size()) png_error(png, "the file ends too early");
  std::memcpy(out, state->rest.data(), count);
  state->rest.remove_prefix(count);
}

/// Runs a step; returns false if libpng left it by longjmp. Therefore neither `step` nor this
/// function may have anything to destroy.
bool completed_png(PngReading& state, void (*step)(PngReading&)) {
  if (setjmp(state.jump_target) != 0) return false;
  step(state);
  return true;
}

void read_png_header(PngReading& state) {
  state.info = png_create_info_struct(state.png);
  if (!state.info) png_error(state.png, "no memory");
  png_set_read_fn(state.png, &state, take_bytes);
  png_set_user_limits(state.png, max_image_pixels, max_image_pixels);
  png_read_info(state.png, state.info);
}

void read_png_rows(PngReading& state) {
  const png_byte colour = png_get_color_type(state.png, state.info);
  png_set_strip_16(state.png);
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(state.png);
  if (!(colour & PNG_COLOR_MASK_COLOR)) {
    png_set_expand_gray_1_2_4_to_8(state.png);
    if (state.channels > 1) png_set_gray_to_rgb(state.png);
  }
  if (state.channels == 4) {
    if (png_get_valid(state.png, state.info, PNG_INFO_tRNS)) png_set_tRNS_to_alpha(state.png);
    png_set_add_alpha(state.png, 255, PNG_FILLER_AFTER);
  } else {
    png_set_strip_alpha(state.png);
  }
  const int passes = png_set_interlace_handling(state.png);
  png_read_update_info(state.png, state.info);
  const size_t row_bytes = png_get_rowbytes(state.png, state.info);
  const png_uint_32 height = png_get_image_height(state.png, state.info);
  const auto width = static_cast<size_t>(png_get_image_width(state.png, state.info));
  const size_t expected = width * static_cast<size_t>(state.channels);
  if (row_bytes != expected) png_error(state.png, "other channels than those asked for");
  for (int pass = 0; pass < passes; ++pass) {
    for (png_uint_32 row = 0; row < height; ++row) {
      png_read_row(state.png, state.pixels + row * row_bytes, nullptr);
    }
  }
  png_read_end(state.png, nullptr);
}

}  // namespace

Image decode_png(const EncodedImage& encoded) {
  PngReading state;
  state.rest = encoded.bytes;
  state.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state, leave_png, ignore_warning);
  if (!state.png) fail_image(encoded.file, "PNG file", "no memory");
  if (!completed_png(state, read_png_header)) fail_image(encoded.file, "PNG file", state.message);
  const bool coloured = png_get_color_type(state.png, state.info) & PNG_COLOR_MASK_COLOR;
  // Colours are converted to luminance below, not by libpng.
  state.channels = encoded.channels == 1 && coloured ? 3 : encoded.channels;
  Image image = zero_image(encoded, png_get_image_height(state.png, state.info),
                           png_get_image_width(state.png, state.info), state.channels);
  state.pixels = image.pixels.data();
  if (!completed_png(state, read_png_rows)) fail_image(encoded.file, "PNG file", state.message);
  return state.channels == encoded.channels ? image : as_grey(image);
}

std::string encode_png(const Image& image, const std::string& file) {
  png_image description{};
  description.version = PNG_IMAGE_VERSION;
  description.width = static_cast<png_uint_32>(image.width);
  description.height = static_cast<png_uint_32>(image.height);
  description.format = image.channels == 1   ? PNG_FORMAT_GRAY
                       : image.channels == 3 ? PNG_FORMAT_RGB
                                             : PNG_FORMAT_RGBA;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(description);
  std::string bytes(size, '\0');
  if (!png_image_write_to_memory(&description, bytes.data(), &size, 0, image.pixels.data(), 0,
                                 nullptr)) {
    fail_image(file, "PNG file", description.message);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace tessera::detail
