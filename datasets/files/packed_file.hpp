#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <tessera/framework/base/internal/file.hpp>

namespace tessera::detail {

class Unpacking;

/// Sequential reader of a regular file, decompressed if its first bytes are those of gzip, bzip2,
/// xz, Zstandard, or a zip archive of one file. Checksums are verified.
class PackedFile {
 public:
  /// Opens `path`. Throws FileError if it is missing, unreadable or not a regular file.
  explicit PackedFile(const std::string& path);
  ~PackedFile();
  PackedFile(const PackedFile&) = delete;
  PackedFile& operator=(const PackedFile&) = delete;

  /// Reads the next bytes into `out`; returns how many, fewer than out.size() only at the end.
  /// Throws FileError naming the file for damaged data, and a zip archive of several files.
  size_t read(std::span<std::byte> out);

 private:
  size_t read_stored(std::span<std::byte> out);

  InputFile file_;     ///< decompresses gzip
  std::string first_;  ///< bytes that were read to recognize the format
  std::unique_ptr<Unpacking> unpacking_;
};

}  // namespace tessera::detail
