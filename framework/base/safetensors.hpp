#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tessera/framework/base/shape.hpp>

namespace tessera {

/// A tensor of a safetensors file: raw little-endian bytes, row-major.
struct SafeTensor {
  std::string name;
  std::string dtype;
  Shape shape;
  std::span<const std::byte> data;
};

/// Bits of one element of a safetensors dtype ("F32": 32); nothing for an unknown name.
std::optional<uint64_t> safetensors_bits(std::string_view dtype);

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

/// Checks and reads a header's JSON text, which `data_bytes` bytes of tensors follow in the file
/// `path`. Accepts what the reference implementation 0.8.0 does, but no name or key twice, no
/// extent of 2^63 or more, no tensor written as a list and no nesting deeper than 64. Throws
/// FileError.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes,
                                           const std::string& path);

/// A safetensors file in memory.
class SafetensorsFile {
 public:
  /// Reads the whole file; its header is checked against the file's size before memory is taken.
  /// Throws FileError.
  explicit SafetensorsFile(const std::string& path);

  /// All tensors in the order of their bytes; the data live as long as this object.
  const std::vector<SafeTensor>& tensors() const { return tensors_; }

  /// The tensor of that name, or nullptr.
  const SafeTensor* find(std::string_view name) const;

  /// The tensor of that name. Throws FileError naming the nearest one there is.
  const SafeTensor& at(std::string_view name) const;

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::unique_ptr<std::byte[]> data_;
  std::vector<SafeTensor> tensors_;
  std::unordered_map<std::string_view, size_t> index_;
  std::map<std::string, std::string> metadata_;
};

/// Writes a safetensors file in one step (see write_file_atomically), ordered as the reference
/// implementation does: wider dtypes first, then by name. Throws ConfigError for a name twice or
/// not UTF-8, an unknown dtype or data of the wrong size, FileError if it cannot be written.
void write_safetensors(const std::string& path, std::vector<SafeTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace tessera
