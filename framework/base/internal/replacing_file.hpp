#pragma once

#include <string>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// A temporary file that commit() atomically renames to `path`: after a crash or a full disk
/// readers see either the old file or the new one. Until then it is in the same folder under
/// another name, which other processes can open for writing, too; without commit() it is removed.
/// Every failure is a FileError naming `path` and the system's reason.
class ReplacingFile {
 public:
  explicit ReplacingFile(const std::string& path, Links links = Links::followed);
  ~ReplacingFile();
  ReplacingFile(const ReplacingFile&) = delete;
  ReplacingFile& operator=(const ReplacingFile&) = delete;

  /// Path of the file before commit().
  const std::string& temporary_path() const { return temporary_path_; }
  /// Open for reading and writing.
  const FileDescriptor& file() const { return file_; }
  int descriptor() const { return file_.get(); }

  /// Syncs the bytes, renames the file to its final path, and removes abandoned temporary files in
  /// the folder. If only the sync of the new name failed, the error says so.
  void commit();

 private:
  std::string path_, target_, folder_, temporary_path_;
  FileDescriptor file_;
};

}  // namespace tessera::detail
