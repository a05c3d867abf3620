#include <tessera/datasets/files/image.hpp>

#include <webp/decode.h>

#include <tessera/framework/base/internal/loaded_library.hpp>

namespace tessera::detail {
namespace {

/// libwebp's functions, loaded when a WebP file is read: few programs read one, and all would load
/// the library at their start.
struct WebpLibrary {
  decltype(&WebPGetFeaturesInternal) features;
  decltype(&WebPDecodeRGBInto) rgb;
  decltype(&WebPDecodeRGBAInto) rgba;
};

WebpLibrary load_webp(const std::string& file) {
  const LoadedLibrary library({"libwebp.so.7"},
                              {.component = file,
                               .rule = "WebP files need libwebp",
                               .fix = "install the package libwebp7, or convert the file to PNG"});
  WebpLibrary webp{};
  library.find("WebPGetFeaturesInternal", webp.features);
  library.find("WebPDecodeRGBInto", webp.rgb);
  library.find("WebPDecodeRGBAInto", webp.rgba);
  return webp;
}

}  // namespace

Image decode_webp(const EncodedImage& encoded) {
  static const WebpLibrary library = load_webp(encoded.file);
  const std::string_view bytes = encoded.bytes;
  const std::string& file = encoded.file;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  // WebPGetFeatures() is inline and calls this.
  if (library.features(data, bytes.size(), &features, WEBP_DECODER_ABI_VERSION) != VP8_STATUS_OK) {
    fail_image(file, "WebP file", "one without a header");
  }
  if (features.has_animation) fail_image(file, "WebP picture", "an animation");
  const int64_t decoded = encoded.channels == 4 ? 4 : 3;
  Image image = zero_image(encoded, static_cast<uint64_t>(features.height),
                           static_cast<uint64_t>(features.width), decoded);
  const auto decode = decoded == 4 ? library.rgba : library.rgb;
  const int row_bytes = static_cast<int>(decoded * image.width);
  if (!decode(data, bytes.size(), image.pixels.data(), image.pixels.size(), row_bytes)) {
    fail_image(file, "WebP file", "one that is damaged or ends too early");
  }
  return encoded.channels == 1 ? as_grey(image) : image;
}

}  // namespace tessera::detail
