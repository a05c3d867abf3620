#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// A log file that grows by whole records: of what a full disk took a part only, the part is cut
/// off again, and later records go on behind the last whole one.
class RecordFile {
 public:
  /// Opens `path`, making the file if there is none; `anew` empties it. False leaves errno.
  bool open(const std::string& path, bool anew);
  bool is_open() const { return file_.valid(); }
  /// Writes the bytes at the end, all or none of them. False leaves errno.
  bool append(std::string_view bytes);

 private:
  FileDescriptor file_;
  bool has_end_ = false;  ///< it is no pipe or device, which cannot be cut
  off_t size_ = 0;        ///< of the whole records
  bool torn_ = false;
};

}  // namespace tessera::detail
