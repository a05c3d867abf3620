#include <tessera/framework/base/internal/record_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

namespace tessera::detail {

bool RecordFile::open(const std::string& path, bool truncate) {
  FileDescriptor opened =
      open_descriptor(path, O_WRONLY | O_CREAT | O_APPEND | (truncate ? O_TRUNC : 0), 0666);
  struct stat info {};
  if (!opened.valid() || ::fstat(opened.get(), &info) != 0) return false;
  file_ = std::move(opened);
  truncatable_ = S_ISREG(info.st_mode);
  size_ = info.st_size;
  torn_ = false;
  return true;
}

bool RecordFile::append(std::string_view bytes) {
  // Retry the truncation that failed after an earlier write.
  if (torn_ && ::ftruncate(file_.get(), size_) != 0) return false;
  torn_ = false;
  if (write_all(file_.get(), std::as_bytes(std::span(bytes)))) {
    size_ += static_cast<off_t>(bytes.size());
    return true;
  }
  const int error = errno;
  torn_ = truncatable_ && ::ftruncate(file_.get(), size_) != 0;
  errno = error;
  return false;
}

}  // namespace tessera::detail
