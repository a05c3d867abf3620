#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// A log file that only ever holds complete records: if the disk is full, a partially written
/// record is truncated, and later records follow the last complete one.
class RecordFile {
 public:
  /// Opens `path`, creating it if needed; `truncate` truncates it. Returns false with errno set on
  /// error.
  bool open(const std::string& path, bool truncate);
  bool is_open() const { return file_.valid(); }
  /// Appends all of the bytes or none. Returns false with errno set on error.
  bool append(std::string_view bytes);

 private:
  FileDescriptor file_;
  bool truncatable_ = false;  ///< whether it is a regular file, which can be truncated
  off_t size_ = 0;            ///< bytes of complete records
  bool torn_ = false;         ///< whether a partial record still has to be truncated
};

}  // namespace tessera::detail
