#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// Returns the bits of one element of a safetensors dtype ("F32": 32); nothing for an unknown name.
std::optional<uint64_t> safetensors_bits(std::string_view dtype);

/// Returns the index of a dtype in the reference implementation's list, whose writer stores later
/// ones first; the number of dtypes for an unknown name.
size_t safetensors_rank(std::string_view dtype);

/// Returns the bytes of a tensor of a known dtype; nothing if they overflow or are not whole.
std::optional<uint64_t> safetensors_bytes(const Shape& shape, std::string_view dtype);

/// A tensor of a header; its bytes are [begin, end) of the data after the header.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  Shape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// The header of a safetensors file, with tensors in the order of their bytes.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
};

/// Maximum header size of the format, and the key of its free-form metadata.
inline constexpr uint64_t max_safetensors_header = 100'000'000;
inline constexpr const char* safetensors_metadata_key = "__metadata__";

/// Size of the length field before the header.
inline constexpr uint64_t safetensors_length_bytes = 8;

/// Parses and checks a header's JSON text. `data_bytes` is the number of bytes after it in the file
/// `path`; absent: not checked. Accepts what the reference implementation 0.8.0 does, except
/// duplicate names or keys, extents of 2^63 or more, tensors written as lists and nesting deeper
/// than 64. Throws FileError.
SafetensorsHeader parse_safetensors_header(std::string_view json,
                                           std::optional<uint64_t> data_bytes,
                                           const std::string& path);

}  // namespace tessera::detail
