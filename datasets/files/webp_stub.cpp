#include <tessera/datasets/files/image.hpp>

namespace tessera::detail {

Image decode_webp(const EncodedImage& encoded) {
  fail_without(encoded.file, "WebP", "libwebp-dev");
}

}  // namespace tessera::detail
