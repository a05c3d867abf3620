#include <tessera/framework/base/internal/replacing_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/owner.hpp>

namespace tessera::detail {
namespace {

/// Returns the file to replace: the target if `path` is a symbolic link, else `path`.
std::string real_target(const std::string& path) { return real_path(path).value_or(path); }

/// Returns the new file's permissions: the old file's, else 0666 as limited by the umask.
mode_t target_mode(const std::string& target, bool& is_new) {
  struct stat info {};
  is_new = ::stat(target.c_str(), &info) != 0;
  if (is_new) return 0666;
  if (!S_ISREG(info.st_mode)) {
    throw FileError(target, "only a regular file can be replaced",
                    S_ISDIR(info.st_mode) ? "a folder" : "a device, pipe or socket",
                    "pass the path of a file");
  }
  return info.st_mode & 07777;
}

}  // namespace

ReplacingFile::ReplacingFile(const std::string& path, Links links)
    : path_(path), target_(links == Links::followed ? real_target(path) : path) {
  bool is_new = true;
  const mode_t mode = links == Links::followed ? target_mode(target_, is_new) : 0666;
  const size_t slash = target_.rfind('/');
  folder_ = slash == std::string::npos ? "./" : target_.substr(0, slash + 1);
  do {
    temporary_path_ = folder_ + new_temporary_name();
    file_ = open_descriptor(temporary_path_, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  } while (!file_.valid() && errno == EEXIST);
  if (!file_.valid()) fail_write(path);
  if (is_new || ::fchmod(descriptor(), mode) == 0) return;
  const int error = errno;
  ::unlink(temporary_path_.c_str());
  errno = error;
  fail_write(path);
}

ReplacingFile::~ReplacingFile() {
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

void ReplacingFile::commit() {
  const bool good =
      sync_descriptor(descriptor()) && file_.reset() && rename_path(temporary_path_, target_);
  if (!good) fail_write(path_);
  temporary_path_.clear();
  if (!sync_folder(folder_)) {
    throw FileError(path_, "the new file was written, and its name must reach the disk",
                    std::strerror(errno),
                    "write it again, as a power failure may restore the old file");
  }
  for (const std::string& path : abandoned_in(folder_)) {
    if (is_regular_file(path)) ::unlink(path.c_str());
  }
}

}  // namespace tessera::detail
