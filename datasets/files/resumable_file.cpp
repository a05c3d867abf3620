#include <tessera/datasets/files/resumable_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <tessera/datasets/files/sha256.hpp>

namespace tessera::detail {

ResumableFile::ResumableFile(const std::string& path) : path_(path) {
  while (!take()) {
  }
}

ResumableFile::~ResumableFile() {
  // Before the lock is released, so that no other process writes to it yet.
  if (file_.valid() && size_ == 0) ::unlink(path_.c_str());
}

bool ResumableFile::take() {
  file_ = open_descriptor(path_, O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
  struct stat held {};
  if (!file_.valid() || !lock_descriptor(file_) || ::fstat(file_.get(), &held) != 0) {
    fail_write(path_);
  }
  size_ = static_cast<uint64_t>(held.st_size);
  return is_at(file_, path_);
}

void ResumableFile::append(std::span<const std::byte> bytes) {
  // Not by write_all_at(), since what was written before an error counts.
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_write(path_);
    bytes = bytes.subspan(static_cast<size_t>(count));
    size_ += static_cast<uint64_t>(count);
  }
}

void ResumableFile::clear() {
  if (::ftruncate(file_.get(), 0) != 0) fail_write(path_);
  size_ = 0;
}

std::string ResumableFile::sha256() const {
  const std::string sum = sha256_of(file_.get());
  if (sum.empty()) fail_write(path_);
  return sum;
}

void ResumableFile::rename_to(const std::string& target) {
  if (!sync_descriptor(file_.get()) || !rename_path(path_, target)) fail_write(path_);
  file_.reset();
}

}  // namespace tessera::detail
