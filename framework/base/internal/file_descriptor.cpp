#include <tessera/framework/base/internal/file_descriptor.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

/// Makes a system call, retrying while it fails with EINTR.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

bool FileDescriptor::reset() {
  const int value = release();
  // On Linux the descriptor is closed even after EINTR.
  return value < 0 || ::close(value) == 0 || errno == EINTR;
}

FileDescriptor open_descriptor(const std::string& path, int flags, mode_t mode) {
  return FileDescriptor(
      uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); }));
}

FileDescriptor open_descriptor(const FileDescriptor& folder, const std::string& path, int flags) {
  return FileDescriptor(
      uninterrupted([&] { return ::openat(folder.get(), path.c_str(), flags | O_CLOEXEC); }));
}

bool is_at(const FileDescriptor& opened, const std::string& path) {
  struct stat held {};
  struct stat named {};
  return ::fstat(opened.get(), &held) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  constexpr size_t max_bytes = size_t{8} << 20;
  while (!bytes.empty()) {
    const ssize_t count = uninterrupted(
        [&] { return ::write(descriptor, bytes.data(), std::min(bytes.size(), max_bytes)); });
    if (count < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
    // Starts write-back early instead of leaving it all to fsync(). Only a hint: if it does
    // nothing, fsync() does the work, and it reports errors.
    if (!bytes.empty()) ::sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
  }
  return true;
}

std::optional<size_t> read_at(int descriptor, uint64_t offset, std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = uninterrupted([&] {
      return ::pread(descriptor, out.data() + done, out.size() - done,
                     static_cast<off_t>(offset + done));
    });
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

bool write_all_at(int descriptor, uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = uninterrupted([&] {
      return ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    });
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return true;
}

bool sync_descriptor(int descriptor) {
  return uninterrupted([&] { return ::fsync(descriptor); }) == 0;
}

bool sync_folder(const std::string& folder) {
  const FileDescriptor opened = open_descriptor(folder, O_RDONLY | O_DIRECTORY);
  // Some file systems do not support fsync for folders (EINVAL).
  return opened.valid() && (sync_descriptor(opened.get()) || errno == EINVAL);
}

bool rename_path(const std::string& from, const std::string& to) {
  return uninterrupted([&] { return std::rename(from.c_str(), to.c_str()); }) == 0;
}

bool exchange_paths(const std::string& a, const std::string& b) {
  return uninterrupted([&] {
           return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
         }) == 0;
}

bool lock_descriptor(const FileDescriptor& opened) {
  return uninterrupted([&] { return ::flock(opened.get(), LOCK_EX); }) == 0;
}

FileDescriptor try_lock_folder(const std::string& folder) {
  FileDescriptor opened = open_descriptor(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!opened.valid() || ::flock(opened.get(), LOCK_EX | LOCK_NB) == 0) return opened;
  const int error = errno;
  opened.reset();
  errno = error;
  return opened;
}

void fail_read(const std::string& path) {
  throw FileError(path, "the file must be readable", std::strerror(errno),
                  "check the path and its permissions");
}

void fail_write(const std::string& path) {
  throw FileError(path, "the file must be writable", std::strerror(errno),
                  "check the folder, its permissions and the free space");
}

}  // namespace tessera::detail
