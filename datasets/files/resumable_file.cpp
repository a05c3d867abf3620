#include <tessera/datasets/files/resumable_file.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <tessera/datasets/files/sha256.hpp>
#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

ResumableFile::ResumableFile(const std::string& path) : path_(path) {
  while (!take()) ::close(descriptor_);
}

ResumableFile::~ResumableFile() {
  if (descriptor_ < 0) return;
  // Before the lock is released, so that no other process writes to it yet.
  if (size_ == 0) ::unlink(path_.c_str());
  ::close(descriptor_);
}

bool ResumableFile::take() {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) fail();
  while (::flock(descriptor_, LOCK_EX) != 0) {
    if (errno != EINTR) fail();
  }
  struct stat held {};
  struct stat named {};
  if (::fstat(descriptor_, &held) != 0) fail();
  size_ = static_cast<uint64_t>(held.st_size);
  return ::stat(path_.c_str(), &named) == 0 && named.st_ino == held.st_ino &&
         named.st_dev == held.st_dev;
}

void ResumableFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail();
    bytes = bytes.subspan(static_cast<size_t>(count));
    size_ += static_cast<uint64_t>(count);
  }
}

void ResumableFile::clear() {
  if (::ftruncate(descriptor_, 0) != 0) fail();
  size_ = 0;
}

std::string ResumableFile::sha256() const {
  const std::string sum = sha256_of(descriptor_);
  if (sum.empty()) fail();
  return sum;
}

void ResumableFile::rename_to(const std::string& target) {
  if (::fsync(descriptor_) != 0 || ::rename(path_.c_str(), target.c_str()) != 0) fail();
  ::close(descriptor_);
  descriptor_ = -1;
}

void ResumableFile::fail() const {
  throw FileError(path_, "the file must be writable", std::strerror(errno),
                  "check the folder, its permissions and the free space");
}

}  // namespace tessera::detail
