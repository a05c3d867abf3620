#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// A partial file that is appended to until it is complete and then gets its final name. One
/// process at a time holds its lock; the next one resumes what the previous one left. Failures are
/// FileErrors naming the path.
class ResumableFile {
 public:
  /// Opens or creates the file, and waits for its lock.
  explicit ResumableFile(const std::string& path);
  /// Closes the file, and removes it if it is empty.
  ~ResumableFile();
  ResumableFile(const ResumableFile&) = delete;
  ResumableFile& operator=(const ResumableFile&) = delete;

  uint64_t size() const { return size_; }
  void append(std::span<const std::byte> bytes);
  void clear();
  /// Returns the SHA-256 of the contents, in hexadecimal.
  std::string sha256() const;
  /// Syncs the file to disk and atomically renames it to `target`. Must be the last call.
  void rename_to(const std::string& target);

 private:
  /// Opens and locks the file; returns false if another process renamed or removed it meanwhile.
  bool take();

  std::string path_;
  FileDescriptor file_;
  uint64_t size_ = 0;
};

}  // namespace tessera::detail
