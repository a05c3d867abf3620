#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tessera::detail {

/// How llama.cpp stores elements: in blocks of `elements` elements, `bytes` bytes each.
struct GgufType {
  const char* name;       ///< "Q4_0", or nullptr for an unknown number
  uint64_t elements = 0;  ///< 0: not implemented
  uint64_t bytes = 0;
};

/// Returns the type that llama.cpp numbers `number`: F32, F16, BF16, Q8_0, Q4_0 and Q4_1 have
/// blocks; others, such as Q4_K, have a name only.
GgufType gguf_type(uint32_t number);

/// Converts entire blocks of an implemented type to float32, as llama.cpp does.
void gguf_to_floats(uint32_t type, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace tessera::detail
