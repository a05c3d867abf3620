#pragma once

#include <string>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// A file that takes the place of the one at `path` in one step: a reader, a crash or a full disk
/// sees the old file or the new one. Until then it lies beside it under another name, where other
/// processes may write too, and is removed if it is not committed. Every failure is a FileError
/// naming `path` and the system's reason.
class ReplacingFile {
 public:
  explicit ReplacingFile(const std::string& path, Links links = Links::followed);
  ~ReplacingFile();
  ReplacingFile(const ReplacingFile&) = delete;
  ReplacingFile& operator=(const ReplacingFile&) = delete;

  /// Where it lies now.
  const std::string& temporary_path() const { return temporary_path_; }
  /// Open for reading and writing.
  const FileDescriptor& file() const { return file_; }
  int descriptor() const { return file_.get(); }

  /// Puts the bytes on disk and the file in place, and removes what killed processes left of such
  /// files in the folder. Where only the new name did not reach the disk, the error says so.
  void commit();

 private:
  std::string path_, target_, folder_, temporary_path_;
  FileDescriptor file_;
};

}  // namespace tessera::detail
