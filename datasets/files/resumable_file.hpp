#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tessera::detail {

/// A file that grows until it is whole and then takes its final name. One process at a time holds
/// it; what one leaves behind the next goes on with. Failures are FileErrors naming the path.
class ResumableFile {
 public:
  /// Opens or makes the file, waiting until no other process holds it.
  explicit ResumableFile(const std::string& path);
  /// Lets go of the file, and removes it if it is empty.
  ~ResumableFile();
  ResumableFile(const ResumableFile&) = delete;
  ResumableFile& operator=(const ResumableFile&) = delete;

  uint64_t size() const { return size_; }
  void append(std::span<const std::byte> bytes);
  void clear();
  /// SHA-256 of what is there, in hexadecimal.
  std::string sha256() const;
  /// Puts the file, its bytes on disk, in the place of `target` in one step. The last call.
  void rename_to(const std::string& target);

 private:
  /// Opens and locks; false if another process renamed or removed the file meanwhile.
  bool take();
  [[noreturn]] void fail() const;

  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace tessera::detail
