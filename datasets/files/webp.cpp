#include <tessera/datasets/files/image.hpp>

#include <webp/decode.h>

namespace tessera::detail {

Image decode_webp(const EncodedImage& encoded) {
  const std::string_view bytes = encoded.bytes;
  const std::string& file = encoded.file;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK) {
    fail_image(file, "WebP file", "one without a header");
  }
  if (features.has_animation) fail_image(file, "WebP picture", "an animation");
  const int64_t decoded = encoded.channels == 4 ? 4 : 3;
  Image image = zero_image(encoded, static_cast<uint64_t>(features.height),
                           static_cast<uint64_t>(features.width), decoded);
  const auto decode = decoded == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  const int row_bytes = static_cast<int>(decoded * image.width);
  if (!decode(data, bytes.size(), image.pixels.data(), image.pixels.size(), row_bytes)) {
    fail_image(file, "WebP file", "one that is damaged or ends too early");
  }
  return encoded.channels == 1 ? as_grey(image) : image;
}

}  // namespace tessera::detail
