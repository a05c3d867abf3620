#include <tessera/datasets/files/image.hpp>
#include <tessera/framework/base/error.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr int64_t channels[] = {1, 3, 4};
  constexpr int64_t most = int64_t{1} << 21;
  const int64_t requested = channels[data[0] % 3];
  try {
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const Image image =
        decode_image({.bytes = bytes, .channels = requested, .file = "case", .max_pixels = most});
    fuzz::require(image.channels == requested && image.height > 0 && image.width > 0);
    fuzz::require(image.height * image.width <= most);
    fuzz::require(static_cast<int64_t>(image.pixels.size()) ==
                  image.height * image.width * image.channels);
  } catch (const FileError&) {
  }
  return 0;
}
