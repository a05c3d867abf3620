#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace tessera::detail {

/// Owns a file descriptor; negative for none.
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
  /// Closes it; false, errno set, if the system lost data that were written.
  bool reset();

 private:
  int value_;
};

/// open(2), again after a signal; `path` may be relative to the open `folder`. Invalid where it
/// fails, errno set.
FileDescriptor open_descriptor(const std::string& path, int flags, mode_t mode = 0);
FileDescriptor open_descriptor(const FileDescriptor& folder, const std::string& path, int flags);

/// Whether what is open still lies at `path`.
bool is_at(const FileDescriptor& opened, const std::string& path);

/// Writes all bytes, going on after signals and short writes; false leaves errno.
bool write_all(int descriptor, std::span<const std::byte> bytes);

/// Fills `out` with the bytes from `offset` on, going on after signals and short reads; returns how
/// many there are, fewer only where the file ends, or nothing, errno set.
std::optional<size_t> read_at(int descriptor, uint64_t offset, std::span<std::byte> out);

/// Writes all bytes from `offset` on, going on after signals and short writes; false leaves errno.
bool write_all_at(int descriptor, uint64_t offset, std::span<const std::byte> bytes);

/// fsync(2), again after a signal.
bool sync_descriptor(int descriptor);

/// Puts the entries of a folder on disk.
bool sync_folder(const std::string& folder);

/// rename(2), again after a signal.
bool rename_path(const std::string& from, const std::string& to);

/// Throws FileError naming the path and errno's text.
[[noreturn]] void fail_read(const std::string& path);
[[noreturn]] void fail_write(const std::string& path);

}  // namespace tessera::detail
