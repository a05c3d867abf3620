#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tessera::detail {

/// Limits on the contents of an archive.
struct ArchiveLimits {
  /// Maximum bytes of a file that is read.
  uint64_t file_bytes = uint64_t{1} << 26;
  /// Maximum unpacked bytes of the archive, skipped files included.
  uint64_t total_bytes = uint64_t{1} << 32;
  /// Maximum number of files and folders.
  uint64_t entries = 1'000'000;
  /// Maximum unpacked bytes per stored byte, beyond the first MiB.
  uint64_t ratio = 100;
};

/// Reads a tar archive, plain or gzip whatever its name, and calls `take` for each file whose name
/// `filter` accepts, in the archive's order; `bytes` are valid during the call only. Names come
/// without "." and empty components ("./a//b" is "a/b"), and end at a NUL. Nothing is written to
/// disk. Throws FileError naming the archive and the entry for an absolute name, one with ".." or a
/// backslash, a link, device or sparse file, an accepted file that occurs twice, more than `limits`
/// allow, a wrong checksum, a truncated archive, and bytes after its end.
void read_archive(const std::string& path, const std::function<bool(std::string_view name)>& filter,
                  const std::function<void(std::string_view name, std::string_view bytes)>& take,
                  const ArchiveLimits& limits = {});

}  // namespace tessera::detail
