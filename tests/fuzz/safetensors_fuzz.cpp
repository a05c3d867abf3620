#include <algorithm>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/io/format/safetensors_header.hpp>
#include <tessera/framework/io/format/safetensors_reader.hpp>

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
    // Reading in parts gives the same bytes, from a file whose header was checked by itself.
    const SafetensorsReader in_parts(file.set({data, size}));
    fuzz::require(in_parts.tensors().size() == read.tensors().size());
    for (size_t i = 0; i < in_parts.tensors().size(); ++i) {
      const StoredSafeTensor& tensor = in_parts.tensors()[i];
      const std::span<const std::byte> expected = read.tensors()[i].data;
      if (*safetensors_bits(tensor.dtype) < 8) continue;
      std::vector<std::byte> all(expected.size());
      in_parts.read(tensor, full_rectangle(tensor.shape), all);
      fuzz::require(std::equal(all.begin(), all.end(), expected.begin()));
    }
  } catch (const FileError&) {
  }
  return 0;
}
