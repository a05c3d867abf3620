#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/checkpoint_index.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  CheckpointIndex index;
  try {
    index = parse_checkpoint_index({reinterpret_cast<const char*>(data), size}, "index.json");
  } catch (const FileError&) {
    return 0;
  }
  // An accepted index is unchanged by writing and reading it.
  const std::string text = checkpoint_index_text(index);
  fuzz::require(checkpoint_index_text(parse_checkpoint_index(text, "index.json")) == text);
  return 0;
}
