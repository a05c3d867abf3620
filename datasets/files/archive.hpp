#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tessera::detail {

/// What an archive may hold at most.
struct ArchiveLimits {
  /// Bytes of a file that is read.
  uint64_t file_bytes = uint64_t{1} << 26;
  /// Unpacked bytes of the whole archive, the files passed over included.
  uint64_t total_bytes = uint64_t{1} << 32;
  /// Files and folders.
  uint64_t entries = 1'000'000;
  /// Unpacked bytes for each stored one, beyond the first MiB.
  uint64_t ratio = 100;
};

/// Reads a tar archive, plain or gzip whatever its name, from its beginning to its end: the files
/// whose name `wanted` says yes to are given to `take`, in the archive's order; `bytes` live until
/// it returns. Names come without "." and empty parts ("./a//b" is "a/b"). Nothing is written to
/// disk. Throws FileError naming the archive and the entry for an absolute name, one with ".." or a
/// backslash, a link, device or sparse file, a wanted file twice, more than `limits` allow, a
/// checksum that is wrong, an archive that is cut short, and bytes after its end. What a name holds
/// after a NUL is no part of it.
void read_archive(const std::string& path, const std::function<bool(std::string_view name)>& wanted,
                  const std::function<void(std::string_view name, std::string_view bytes)>& take,
                  const ArchiveLimits& limits = {});

}  // namespace tessera::detail
