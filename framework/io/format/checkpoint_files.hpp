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

/// A regular file of an open folder, read at any place. Failures are FileErrors.
class StoredFile {
 public:
  StoredFile(std::shared_ptr<const FileDescriptor> folder, const std::string& folder_path,
             const std::string& name);

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Fills `out` with the bytes from `at` on.
  void read(uint64_t at, std::span<std::byte> out) const;
  /// The first `count` bytes, at most size().
  std::string text(uint64_t count) const;
  /// From here on the file is opened for each read. If it is not there any more, or another one
  /// is, a read fails.
  void close() { descriptor_ = FileDescriptor(); }

 private:
  /// Opens it and tells which file it is.
  FileDescriptor open(struct stat& info) const;

  std::shared_ptr<const FileDescriptor> folder_;
  std::string name_;
  std::string path_;
  FileDescriptor descriptor_;  ///< invalid once closed
  uint64_t size_ = 0;
  ino_t number_ = 0;  ///< the file system's
};

/// The files of a checkpoint, of which the first 256 stay open: a process may not have many more.
/// Checks on opening that index, sizes and headers fit together.
class CheckpointFiles {
 public:
  /// Opens the checkpoint in an open folder; `path` names it in errors. Throws FileError.
  CheckpointFiles(const std::shared_ptr<const FileDescriptor>& folder, const std::string& path);

  const std::string& path() const { return path_; }
  const CheckpointIndex& index() const { return index_; }

  /// Reads a chunk of a piece, all of it, and verifies its checksum. Throws FileError naming file
  /// and tensor.
  void read_chunk(size_t tensor, size_t piece, uint64_t chunk, std::span<std::byte> out) const;

  /// Reads the headers again and verifies them. Throws FileError.
  void verify_headers() const;

  uint64_t bytes_read() const { return bytes_read_; }

 private:
  /// A piece, by its tensor's number and its own among the tensor's.
  struct Place {
    size_t tensor = 0;
    size_t piece = 0;
  };

  void place_pieces();
  /// Takes the offsets of a shard's pieces from its header; `checksums` are those of its chunks.
  void find_offsets(size_t shard, const std::unordered_map<std::string, Place>& pieces,
                    const std::string& checksums);

  std::string path_;
  CheckpointIndex index_;
  std::vector<StoredFile> files_;
  /// Where each piece of each tensor begins in its file.
  std::vector<std::vector<uint64_t>> offsets_;
  mutable std::atomic<uint64_t> bytes_read_{0};
};

}  // namespace tessera::detail
