#include <tessera/datasets/files/image.hpp>

namespace tessera::detail {

Image decode_jpeg(const EncodedImage& encoded) {
  fail_without(encoded.file, "JPEG", "libjpeg62-turbo-dev");
}

std::string encode_jpeg(const Image&, const std::string& file) {
  fail_without(file, "JPEG", "libjpeg62-turbo-dev");
}

}  // namespace tessera::detail
