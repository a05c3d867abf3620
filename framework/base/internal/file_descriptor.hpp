#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace tessera::detail {

/// Owning file descriptor; negative: none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int value = -1) : value_(value) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : value_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  int get() const { return value_; }
  bool valid() const { return value_ >= 0; }
  int release() { return std::exchange(value_, -1); }
  /// Closes the descriptor. Returns false, with errno set, if written data may be lost.
  bool reset();

 private:
  int value_;
};

/// Calls open(2), retrying after EINTR; `path` may be relative to the open `folder`. On failure the
/// result is invalid and errno is set.
FileDescriptor open_descriptor(const std::string& path, int flags, mode_t mode = 0);
FileDescriptor open_descriptor(const FileDescriptor& folder, const std::string& path, int flags);

/// Whether `path` still names the open file.
bool is_at(const FileDescriptor& opened, const std::string& path);

/// Writes all bytes, continuing after EINTR and short writes. Returns false with errno set on
/// error.
bool write_all(int descriptor, std::span<const std::byte> bytes);

/// Reads into `out` from `offset` on, continuing after EINTR and short reads. Returns the number of
/// bytes read, fewer than out.size() only at the end of the file; nullopt with errno set on error.
std::optional<size_t> read_at(int descriptor, uint64_t offset, std::span<std::byte> out);

/// Like write_all(), at `offset`.
bool write_all_at(int descriptor, uint64_t offset, std::span<const std::byte> bytes);

/// Calls fsync(2), retrying after EINTR.
bool sync_descriptor(int descriptor);

/// Calls fsync(2) on a folder, so that its entries are on disk.
bool sync_folder(const std::string& folder);

/// Calls rename(2), retrying after EINTR.
bool rename_path(const std::string& from, const std::string& to);

/// Exchanges two names atomically, retrying after EINTR. Returns false with errno set on failure.
bool exchange_paths(const std::string& a, const std::string& b);

/// Waits for the exclusive lock of an open file or folder. Returns false with errno set on failure.
bool lock_descriptor(const FileDescriptor& opened);

/// Locks a folder until the result is closed or the process ends in any way. Invalid, with errno
/// EWOULDBLOCK, if another process holds the lock.
FileDescriptor try_lock_folder(const std::string& folder);

/// Throws FileError naming the path and errno's text.
[[noreturn]] void fail_read(const std::string& path);
[[noreturn]] void fail_write(const std::string& path);

}  // namespace tessera::detail
