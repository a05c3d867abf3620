#include <tessera/datasets/files/npy.hpp>
#include <tessera/framework/base/error.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile file;
  try {
    const NpyArray array = read_npy(file.set({data, size}), uint64_t{1} << 24);
    uint64_t count = 1;
    for (const int64_t extent : array.shape) count *= static_cast<uint64_t>(extent);
    fuzz::require(array.dtype.empty() == array.texts.has_value());
    if (array.texts) {
      fuzz::require(array.texts->size() == count && array.data.empty());
    } else {
      fuzz::require(array.data.size() < size);
      fuzz::require(count == 0 ? array.data.empty() : array.data.size() % count == 0);
    }
  } catch (const FileError&) {
  }
  return 0;
}
