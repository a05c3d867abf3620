#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// Bits of one element of a safetensors dtype ("F32": 32); nothing for an unknown name.
std::optional<uint64_t> safetensors_bits(std::string_view dtype);

/// Place of a dtype in the reference implementation's list, whose writer puts the later ones first;
/// the number of dtypes for an unknown name.
size_t safetensors_rank(std::string_view dtype);

/// Bytes of a tensor of a known dtype; nothing where they overflow or end inside a byte.
std::optional<uint64_t> safetensors_bytes(const Shape& shape, std::string_view dtype);

/// One tensor of a header; its bytes are [begin, end) of the data after the header.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  Shape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// The header of a safetensors file, tensors in the order of their bytes.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
};

/// Longest header that the format allows, and the key of the free texts in it.
inline constexpr uint64_t max_safetensors_header = 100'000'000;
inline constexpr const char* safetensors_metadata_key = "__metadata__";

/// Bytes in front of the header that tell its length.
inline constexpr uint64_t safetensors_length_bytes = 8;

/// Checks and reads a header's JSON text, which `data_bytes` bytes of tensors follow in the file
/// `path`; absent: as many as it tells. Accepts what the reference implementation 0.8.0 does, but
/// no name or key twice, no extent of 2^63 or more, no tensor written as a list and no nesting
/// deeper than 64. Throws FileError.
SafetensorsHeader parse_safetensors_header(std::string_view json,
                                           std::optional<uint64_t> data_bytes,
                                           const std::string& path);

}  // namespace tessera::detail
