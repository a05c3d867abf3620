#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/io/format/safetensors_header.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile file;
  try {
    const SafetensorsFile read(file.set({data, size}));
    uint64_t bytes = 0;
    for (const SafeTensor& tensor : read.tensors()) {
      fuzz::require(safetensors_bytes(tensor.shape, tensor.dtype) == tensor.data.size());
      fuzz::require(read.find(tensor.name) == &tensor);
      // Reads every byte, for the address sanitizer to see.
      bytes += tensor.data.size();
      for (const std::byte b : tensor.data) bytes += static_cast<uint64_t>(b) >> 8;
    }
    fuzz::require(bytes <= size);
  } catch (const FileError&) {
  }
  return 0;
}
