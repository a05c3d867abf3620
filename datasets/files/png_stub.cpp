#include <tessera/datasets/files/image.hpp>

namespace tessera::detail {

Image decode_png(const EncodedImage& encoded) { fail_without(encoded.file, "PNG", "libpng-dev"); }

std::string encode_png(const Image&, const std::string& file) {
  fail_without(file, "PNG", "libpng-dev");
}

}  // namespace tessera::detail
