#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/io/format/checkpoint_index.hpp>

namespace tessera::detail {

/// A regular file in an open folder, read at any offset. All failures are FileErrors.
class StoredFile {
 public:
  StoredFile(std::shared_ptr<const FileDescriptor> folder, const std::string& folder_path,
             const std::string& name);

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Fills `out` with the bytes from offset `at` on.
  void read(uint64_t at, std::span<std::byte> out) const;
  /// Returns the first `count` bytes; `count` is at most size().
  std::string text(uint64_t count) const;
  /// Closes the file; each further read opens it again, and fails if it was removed or replaced.
  void close() { descriptor_ = FileDescriptor(); }

 private:
  /// Opens the file and fills `info` with its status.
  FileDescriptor open(struct stat& info) const;

  std::shared_ptr<const FileDescriptor> folder_;
  std::string name_;
  std::string path_;
  FileDescriptor descriptor_;  ///< invalid once closed
  uint64_t size_ = 0;
  ino_t inode_ = 0;  ///< inode number
};

/// The files of a checkpoint. The first 256 stay open, since the number of files that a process may
/// open is limited. Opening checks that index, sizes and headers are consistent.
class CheckpointFiles {
 public:
  /// Opens the checkpoint in an open folder; `path` names it in errors. Throws FileError.
  CheckpointFiles(const std::shared_ptr<const FileDescriptor>& folder, const std::string& path);

  const std::string& path() const { return path_; }
  const CheckpointIndex& index() const { return index_; }

  /// Reads a complete chunk of a piece and verifies its checksum. Throws FileError naming file and
  /// tensor.
  void read_chunk(size_t tensor, size_t piece, uint64_t chunk, std::span<std::byte> out) const;

  /// Reads the headers again and verifies their checksums. Throws FileError.
  void verify_headers() const;

  uint64_t bytes_read() const { return bytes_read_; }

 private:
  /// Indices of a tensor and of one of its pieces.
  struct PieceId {
    size_t tensor = 0;
    size_t piece = 0;
  };

  void locate_pieces();
  /// Reads the offsets of a shard's pieces from its header; `checksums` is the text of its chunks'
  /// checksums.
  void find_offsets(size_t shard, const std::unordered_map<std::string, PieceId>& pieces,
                    const std::string& checksums);

  std::string path_;
  CheckpointIndex index_;
  std::vector<StoredFile> files_;
  /// Offset of each piece of each tensor in its file.
  std::vector<std::vector<uint64_t>> offsets_;
  mutable std::atomic<uint64_t> bytes_read_{0};
};

}  // namespace tessera::detail
