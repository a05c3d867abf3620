#include <algorithm>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/gguf_reader.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile file;
  try {
    const GgufReader reader(file.set({data, size}));
    uint64_t end = 0;
    for (const GgufTensor& tensor : reader.tensors()) {
      uint64_t elements = 1;
      for (const int64_t extent : tensor.shape) elements *= static_cast<uint64_t>(extent);
      const GgufType type = gguf_type(tensor.type);
      // The bytes of tensors are inside the file and not shared.
      fuzz::require(type.elements > 0 && tensor.offset >= end);
      end = tensor.offset + elements / type.elements * type.bytes;
      fuzz::require(end <= size);
      std::vector<float> all(elements);
      reader.read(tensor, full_rectangle(tensor.shape), all);
      if (elements == 0 || tensor.shape.empty()) continue;
      // A part gives the same elements; NaN differs from itself, so bytes are compared.
      Rectangle area = full_rectangle(tensor.shape);
      for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
        area.begin[axis] = area.end[axis] - 1;
      }
      std::vector<float> last(1);
      reader.read(tensor, area, last);
      const auto bytes = std::as_bytes(std::span(last));
      fuzz::require(
          std::equal(bytes.begin(), bytes.end(), std::as_bytes(std::span(all).last(1)).begin()));
    }
  } catch (const FileError&) {
  }
  return 0;
}
