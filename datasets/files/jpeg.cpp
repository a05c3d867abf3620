#include <tessera/datasets/files/image.hpp>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

// These headers use FILE without including <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

namespace tessera::detail {
namespace {

// A picture has about ten scans. Each scan covers all pixels, so thousands would take too long.
constexpr int max_scans = 500;

/// Target of libjpeg's error callbacks, which must not return to it.
struct JpegFailure {
  jpeg_error_mgr manager{};
  std::jmp_buf jump_target{};
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void leave_jpeg(j_common_ptr info) {
  auto* failure = reinterpret_cast<JpegFailure*>(info->err);
  info->err->format_message(info, failure->message);
  std::longjmp(failure->jump_target, 1);
}

/// Ignores warnings but for a premature end of file, which is an error here.
void take_message(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) leave_jpeg(info);
}

void count_scans(j_common_ptr info) {
  if (!info->is_decompressor) return;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= max_scans) return;
  info->err->msg_code = JERR_BAD_PROGRESSION;
  leave_jpeg(info);
}

void set_errors(JpegFailure& failure, jpeg_error_mgr*& manager) {
  manager = jpeg_std_error(&failure.manager);
  manager->error_exit = leave_jpeg;
  manager->emit_message = take_message;
  manager->output_message = [](j_common_ptr) {};
}

struct Decoder {
  Decoder() { set_errors(failure, info.err); }
  ~Decoder() { jpeg_destroy_decompress(&info); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  jpeg_decompress_struct info{};
  jpeg_progress_mgr progress{};
  JpegFailure failure;
};

/// Runs a step; returns false if libjpeg left it by longjmp. Therefore neither `step` nor this
/// function may have anything to destroy.
template <class State>
bool completed(State& state, void (*step)(State&)) {
  if (setjmp(state.failure.jump_target) != 0) return false;
  step(state);
  return true;
}

struct Decoding : Decoder {
  std::string_view bytes;
  uint8_t* pixels = nullptr;
  int64_t channels = 0;
};

void read_header(Decoding& state) {
  jpeg_create_decompress(&state.info);
  state.progress.progress_monitor = count_scans;
  state.info.progress = &state.progress;
  jpeg_mem_src(&state.info, reinterpret_cast<const unsigned char*>(state.bytes.data()),
               state.bytes.size());
  jpeg_read_header(&state.info, TRUE);
  const bool ink =
      state.info.jpeg_color_space == JCS_CMYK || state.info.jpeg_color_space == JCS_YCCK;
  const J_COLOR_SPACE colour = state.channels == 4 ? JCS_EXT_RGBA : JCS_RGB;
  state.info.out_color_space = ink ? JCS_CMYK : state.channels == 1 ? JCS_GRAYSCALE : colour;
  // libjpeg does not convert RGB files to grayscale.
  if (!ink && state.channels == 1 && state.info.jpeg_color_space == JCS_RGB) {
    state.info.out_color_space = JCS_RGB;
  }
}

void read_rows(Decoding& state) {
  jpeg_start_decompress(&state.info);
  const size_t row_bytes =
      size_t{state.info.output_width} * static_cast<size_t>(state.info.output_components);
  while (state.info.output_scanline < state.info.output_height) {
    JSAMPROW row = state.pixels + state.info.output_scanline * row_bytes;
    jpeg_read_scanlines(&state.info, &row, 1);
  }
  jpeg_finish_decompress(&state.info);
}

/// Converts CMYK to RGB; Adobe's files store inverted CMYK.
Image cmyk_to_rgb(const Image& inks, bool inverted) {
  Image image{inks.height, inks.width, 3, {}};
  image.pixels.resize(inks.pixels.size() / 4 * 3);
  for (size_t i = 0; i < inks.pixels.size() / 4; ++i) {
    const auto light = [&](size_t j) {
      const int ink = inks.pixels[4 * i + j];
      return inverted ? ink : 255 - ink;
    };
    for (size_t j = 0; j < 3; ++j) {
      image.pixels[3 * i + j] = static_cast<uint8_t>(light(j) * light(3) / 255);
    }
  }
  return image;
}

Image with_alpha(const Image& rgb) {
  Image image{rgb.height, rgb.width, 4, {}};
  image.pixels.reserve(rgb.pixels.size() / 3 * 4);
  for (size_t i = 0; i < rgb.pixels.size(); i += 3) {
    image.pixels.insert(image.pixels.end(), &rgb.pixels[i], &rgb.pixels[i] + 3);
    image.pixels.push_back(255);
  }
  return image;
}

struct JpegEncoding {
  JpegEncoding() { set_errors(failure, info.err); }
  ~JpegEncoding() {
    jpeg_destroy_compress(&info);
    std::free(bytes);
  }
  JpegEncoding(const JpegEncoding&) = delete;
  JpegEncoding& operator=(const JpegEncoding&) = delete;

  jpeg_compress_struct info{};
  JpegFailure failure;
  const Image* image = nullptr;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
};

void write_rows(JpegEncoding& state) {
  const Image& image = *state.image;
  jpeg_create_compress(&state.info);
  jpeg_mem_dest(&state.info, &state.bytes, &state.size);
  state.info.image_width = static_cast<JDIMENSION>(image.width);
  state.info.image_height = static_cast<JDIMENSION>(image.height);
  state.info.input_components = static_cast<int>(image.channels);
  state.info.in_color_space = image.channels == 1   ? JCS_GRAYSCALE
                              : image.channels == 3 ? JCS_RGB
                                                    : JCS_EXT_RGBA;
  jpeg_set_defaults(&state.info);
  jpeg_start_compress(&state.info, TRUE);
  while (state.info.next_scanline < state.info.image_height) {
    const int64_t offset = state.info.next_scanline * image.width * image.channels;
    auto* row = const_cast<JSAMPROW>(image.pixels.data() + offset);
    jpeg_write_scanlines(&state.info, &row, 1);
  }
  jpeg_finish_compress(&state.info);
}

}  // namespace

Image decode_jpeg(const EncodedImage& encoded) {
  Decoding state;
  state.bytes = encoded.bytes;
  state.channels = encoded.channels;
  if (!completed(state, read_header)) fail_image(encoded.file, "JPEG file", state.failure.message);
  const J_COLOR_SPACE space = state.info.out_color_space;
  const int64_t decoded = space == JCS_CMYK || space == JCS_EXT_RGBA ? 4
                          : space == JCS_GRAYSCALE                   ? 1
                                                                     : 3;
  Image image = zero_image(encoded, state.info.image_height, state.info.image_width, decoded);
  state.pixels = image.pixels.data();
  if (!completed(state, read_rows)) fail_image(encoded.file, "JPEG file", state.failure.message);
  if (space == JCS_CMYK) {
    image = cmyk_to_rgb(image, state.info.saw_Adobe_marker);
    if (encoded.channels == 4) return with_alpha(image);
  }
  return encoded.channels == 1 && image.channels == 3 ? as_grey(image) : image;
}

std::string encode_jpeg(const Image& image, const std::string& file) {
  JpegEncoding state;
  state.image = &image;
  if (!completed(state, write_rows)) fail_image(file, "JPEG file", state.failure.message);
  return {reinterpret_cast<const char*>(state.bytes), state.size};
}

}  // namespace tessera::detail
