#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

namespace tessera::fuzz {

/// A file in memory, for fuzzing file readers without a disk.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0) std::abort();
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// Replaces the content by `bytes` and returns the path to open.
  std::string set(std::span<const uint8_t> bytes) {
    const auto size = static_cast<off_t>(bytes.size());
    const bool written = ::ftruncate(descriptor_, 0) == 0 &&
                         ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) == size;
    if (!written) std::abort();
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

 private:
  int descriptor_;
};

/// Aborts the process, and so the fuzzing, if an invariant does not hold.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace tessera::fuzz
