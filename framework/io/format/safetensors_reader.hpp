#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/io/format/checkpoint_grid.hpp>
#include <tessera/framework/io/format/safetensors.hpp>

namespace tessera::detail {

/// A tensor in one of the files of a SafetensorsReader.
struct StoredSafeTensor {
  std::string name;
  std::string dtype;
  Shape shape;
  size_t file = 0;      ///< number of its file
  uint64_t offset = 0;  ///< offset of its bytes behind the header
};

/// Reads tensors of a safetensors file in parts, or of several files that an index lists. Only a
/// compressed file is read into memory. Every failure is a FileError naming the file. Thread-safe
/// for reads.
class SafetensorsReader {
 public:
  /// Opens "x.safetensors" or "x.safetensors.index.json" with its files, and reads their headers.
  explicit SafetensorsReader(const std::string& path);

  const std::string& path() const { return path_; }
  /// Returns the file's tensors, or those that the index lists.
  const std::vector<StoredSafeTensor>& tensors() const { return tensors_; }
  /// Verifies the bytes of the files that Tessera wrote with a checksum.
  void verify() const;
  /// Fills `out`, row-major, with a rectangle of a tensor; reads only its bytes.
  void read(const StoredSafeTensor& tensor, const Rectangle& area, std::span<std::byte> out) const;
  /// Returns the bytes that read() has read so far.
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  struct File {
    std::string path;
    SafetensorsStart start;
    std::unique_ptr<InputFile> input;
    std::unique_ptr<SafetensorsFile> unpacked;  ///< the content of a compressed file
  };
  void open(const std::string& path, const std::vector<std::string>* listed);
  void read_bytes(const File& file, uint64_t offset, std::span<std::byte> out) const;

  std::string path_;
  std::vector<File> files_;
  std::vector<StoredSafeTensor> tensors_;
  mutable std::atomic<uint64_t> bytes_read_ = 0;
};

}  // namespace tessera::detail
