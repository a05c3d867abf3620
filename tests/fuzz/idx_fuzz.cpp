#include <tessera/datasets/files/idx.hpp>
#include <tessera/framework/base/error.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile file;
  try {
    const IdxArray array = read_idx(file.set({data, size}), uint64_t{1} << 24);
    uint64_t count = 1;
    for (const int64_t extent : array.shape) count *= static_cast<uint64_t>(extent);
    fuzz::require(count == array.data.size() && array.data.size() < size);
  } catch (const FileError&) {
  }
  return 0;
}
