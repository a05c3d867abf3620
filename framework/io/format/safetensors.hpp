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

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/io/format/safetensors_header.hpp>

namespace tessera::detail {

/// A tensor of a safetensors file: raw little-endian bytes, row-major.
struct SafeTensor {
  std::string name;
  std::string dtype;
  Shape shape;
  std::span<const std::byte> data;
};

/// A safetensors file in memory.
class SafetensorsFile {
 public:
  /// Reads the file. The header is checked against the file's size before memory is allocated, and
  /// the data against the checksum that Tessera wrote, if there is one. Throws FileError.
  explicit SafetensorsFile(const std::string& path);

  /// Returns all tensors in the order of their bytes; their data live as long as this object.
  const std::vector<SafeTensor>& tensors() const { return tensors_; }

  /// Returns the tensor called `name`, or nullptr.
  const SafeTensor* find(std::string_view name) const;

  /// Returns the tensor called `name`. Throws FileError naming the most similar name.
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

/// The header of a safetensors file, and where the tensors' bytes are.
struct SafetensorsStart {
  SafetensorsHeader header;
  uint64_t begin = 0;   ///< offset of the tensors' bytes
  uint64_t size = 0;    ///< number of the tensors' bytes
  bool packed = false;  ///< whether the file is compressed, so that the offset is not the file's
};

/// Reads and checks the header of a file from its first byte on; the file is then at the tensors'
/// bytes. Throws FileError.
SafetensorsStart read_safetensors_start(InputFile& file, const std::string& path);

/// Returns the checksum of the tensors' bytes that Tessera wrote into the metadata; nothing for
/// other writers, who may use the key for something else.
std::optional<std::string> safetensors_checksum(const std::map<std::string, std::string>& metadata);

/// Throws FileError if the checksum of a file's tensors is not the one in its metadata.
void check_safetensors_checksum(const std::string& path, const std::string& expected,
                                const std::string& actual);

/// Returns whether a tensor may have that name: UTF-8, and not the metadata key.
bool is_safetensors_name(std::string_view name);

/// Returns the bytes before the data of a safetensors file: the header's length and the header.
/// Sorts the tensors into the order of their bytes. Throws ConfigError as write_safetensors().
std::string begin_safetensors(std::vector<SafeTensor>& tensors,
                              const std::map<std::string, std::string>& metadata,
                              const std::string& path);

/// The metadata key of Tessera's checksum: the XXH3-128 of all bytes after the header.
inline constexpr const char* safetensors_checksum_key = "xxh128";

/// Writes a safetensors file atomically (see write_file_atomically), in the reference
/// implementation's order: wider dtypes first, then by name. If `metadata` has the key of the
/// checksum, its value becomes the checksum of the data. Throws ConfigError for a name that is
/// duplicate or not UTF-8, an unknown dtype or data of the wrong size, FileError if the file cannot
/// be written.
void write_safetensors(const std::string& path, std::vector<SafeTensor> tensors,
                       std::map<std::string, std::string> metadata = {});

}  // namespace tessera::detail
