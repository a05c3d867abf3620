#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace tessera::detail {

/// A compressed format that libarchive reads.
enum class PackedFormat { bzip2, xz, zstandard, zip };

/// Returns its name for texts.
const char* name_of(PackedFormat format);

/// Decompressor by libarchive of a file, or of the one file in a zip archive.
class Unpacking {
 public:
  /// Reads compressed bytes into a span, fewer than it has only at their end.
  using ReadStored = std::function<size_t(std::span<std::byte>)>;

  /// `path` is for errors. Throws FileError for damaged data and, without libarchive, ConfigError.
  Unpacking(const std::string& path, PackedFormat format, ReadStored read_stored);
  ~Unpacking();
  Unpacking(const Unpacking&) = delete;
  Unpacking& operator=(const Unpacking&) = delete;

  /// Reads the next bytes into `out`; returns how many, fewer than out.size() only at the end.
  /// Throws FileError for damaged data, and a zip archive of several files.
  size_t read(std::span<std::byte> out);

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace tessera::detail
