#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

namespace tessera::fuzz {

/// A file in memory, so that readers of files can be fuzzed without a disk.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0) std::abort();
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// Makes `bytes` the whole content, and returns the path to open.
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

/// Ends the process, and so the fuzzing, where something that always holds does not.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace tessera::fuzz
