#include <tessera/framework/io/format/gguf_types.hpp>

#include <array>
#include <bit>
#include <cmath>

namespace tessera::detail {
namespace {

// Numbers and names of ggml.h.
enum GgufNumber : uint32_t { f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q8_0 = 8, bf16 = 30 };

constexpr std::array<const char*, 40> gguf_names = {
    "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
    "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
    "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
    "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
    "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
    "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4"};

constexpr size_t block_elements = 32;

uint32_t little_endian(const std::byte* bytes, size_t count) {
  uint32_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | std::to_integer<uint32_t>(bytes[i]);
  return value;
}

float float_of_half(const std::byte* bytes) {
  const uint32_t bits = little_endian(bytes, 2);
  const uint32_t sign = bits >> 15 << 31, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float value = std::ldexp(static_cast<float>(fraction), -24);
  return sign == 0 ? value : -value;
}

/// Fills `out` with `scale` · element + `offset` of 32 elements of 4 bits: the lower halves of 16
/// bytes, then the upper ones. `zero` is the element that stands for 0.
void read_nibbles(const std::byte* bytes, float scale, int zero, float offset, float* out) {
  for (size_t i = 0; i < block_elements / 2; ++i) {
    const int byte = std::to_integer<int>(bytes[i]);
    out[i] = static_cast<float>((byte & 15) - zero) * scale + offset;
    out[i + block_elements / 2] = static_cast<float>((byte >> 4) - zero) * scale + offset;
  }
}

void read_block(uint32_t type, const std::byte* block, float* out) {
  switch (type) {
    case f32:
      *out = std::bit_cast<float>(little_endian(block, 4));
      return;
    case f16:
      *out = float_of_half(block);
      return;
    case bf16:
      *out = std::bit_cast<float>(little_endian(block, 2) << 16);
      return;
    case q4_0:
      return read_nibbles(block + 2, float_of_half(block), 8, 0, out);
    case q4_1:
      return read_nibbles(block + 4, float_of_half(block), 0, float_of_half(block + 2), out);
    default:  // Q8_0
      const float scale = float_of_half(block);
      for (size_t i = 0; i < block_elements; ++i) {
        out[i] = static_cast<float>(std::to_integer<int8_t>(block[2 + i])) * scale;
      }
  }
}

}  // namespace

GgufType gguf_type(uint32_t number) {
  GgufType type{number < gguf_names.size() ? gguf_names[number] : nullptr};
  if (number == f32) type.elements = 1, type.bytes = 4;
  if (number == f16 || number == bf16) type.elements = 1, type.bytes = 2;
  if (number == q4_0) type.elements = block_elements, type.bytes = 18;
  if (number == q4_1) type.elements = block_elements, type.bytes = 20;
  if (number == q8_0) type.elements = block_elements, type.bytes = 34;
  return type;
}

void gguf_to_floats(uint32_t type, std::span<const std::byte> blocks, std::span<float> out) {
  const GgufType about = gguf_type(type);
  const size_t count = out.size() / about.elements;
  for (size_t i = 0; i < count; ++i) {
    read_block(type, blocks.data() + i * about.bytes, out.data() + i * about.elements);
  }
}

}  // namespace tessera::detail
