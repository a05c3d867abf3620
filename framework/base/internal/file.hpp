#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tessera::detail {

/// Whether `path` exists (file, folder, device).
bool exists(const std::string& path);

/// How gzip files are recognized: by a name ending in .gz, or by their magic number.
enum class Unpack { by_name, by_content };

/// Sequential reader of a regular file; decompresses gzip and verifies its checksum. Every failure
/// is a FileError naming the file and the system's reason.
class InputFile {
 public:
  /// Opens `path`. Throws FileError if it is missing, unreadable or not a regular file.
  explicit InputFile(const std::string& path, Unpack unpack = Unpack::by_name);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Reads the next bytes into `out`; returns how many, fewer than out.size() only at the end.
  size_t read(std::span<std::byte> out);

  /// Reads bytes on disk, compressed or not, from `offset` on; read() continues where it was.
  /// Returns how many, fewer than out.size() only at the end. Thread-safe.
  size_t read_stored_at(uint64_t offset, std::span<std::byte> out) const;

  /// Returns the number of bytes on disk.
  uint64_t stored_size() const;

  /// Returns an upper bound on the total number of bytes that read() can return.
  uint64_t size_bound() const;

 private:
  class Gzip;

  size_t read_stored(std::span<std::byte> out);

  std::string path_;
  int descriptor_ = -1;
  uint64_t stored_size_ = 0;
  std::unique_ptr<Gzip> gzip_;
};

/// Returns all bytes of a file, decompressed if its name ends in .gz. Throws FileError if it cannot
/// be read or holds more than `max_bytes`.
std::string read_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 32);

/// How a symbolic link at the written path is treated. `followed`: its target is replaced.
/// `replaced`: the link itself is replaced and its target ignored; for folders where others may
/// plant links.
enum class Links { followed, replaced };

/// Atomically replaces the file at `path` by the concatenated parts: after a crash or a full disk
/// readers see either the old file or the new one. On return the bytes are on disk, and leftovers
/// of killed writers in the folder are removed (is_abandoned()). Throws FileError naming the path
/// and the system's reason; the old file is then unchanged and no temporary is left, or the error
/// says that the new file is in place but its name may not be on disk.
void write_file_atomically(const std::string& path,
                           std::span<const std::span<const std::byte>> parts,
                           Links links = Links::followed);

/// Atomically replaces the file at `path` by a text, like the overload above.
void write_file_atomically(const std::string& path, std::string_view text,
                           Links links = Links::followed);

}  // namespace tessera::detail
