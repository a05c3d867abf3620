#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tessera::detail {

/// Whether something (file, folder, device) lies at `path`.
bool exists(const std::string& path);

/// Which files are unpacked while they are read: those with a name ending in .gz, or those that
/// begin as gzip does.
enum class Unpack { by_name, by_content };

/// A regular file read from its beginning; gzip is unpacked on the way, with its checksum verified.
/// Every failure is a FileError naming the file and the system's reason.
class InputFile {
 public:
  /// Opens `path`. Throws FileError if it is missing, unreadable or not a regular file.
  explicit InputFile(const std::string& path, Unpack unpack = Unpack::by_name);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Fills `out` with the next bytes; returns how many, fewer than asked for only at the end.
  size_t read(std::span<std::byte> out);

  /// Number of bytes on disk.
  uint64_t stored_size() const;

  /// An upper bound of the number of bytes that read() can deliver in all.
  uint64_t size_bound() const;

 private:
  class Gzip;

  size_t read_stored(std::span<std::byte> out);

  std::string path_;
  int descriptor_ = -1;
  uint64_t stored_size_ = 0;
  std::unique_ptr<Gzip> gzip_;
};

/// All bytes of a file, unpacked if its name ends in .gz. Throws FileError if it cannot be read or
/// holds more than `max_bytes`.
std::string read_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 32);

/// What becomes of a symbolic link at a path that is written: the file it points to is replaced, or
/// the link is and nothing is taken from what lies there, as in a folder where others may plant
/// one.
enum class Links { followed, replaced };

/// Replaces the file at `path` by the parts, one after the other, in one step: a reader, a crash or
/// a full disk sees the old file or the new one. The bytes are on disk when it returns, and what
/// killed processes left of such writes in the folder is gone (is_abandoned()). Throws FileError
/// naming the path and the system's reason, leaving the old file and nothing else behind, or saying
/// that the new one is in place but not its name on disk.
void write_file_atomically(const std::string& path,
                           std::span<const std::span<const std::byte>> parts,
                           Links links = Links::followed);

/// Replaces the file at `path` by a text in one step, as the other one does.
void write_file_atomically(const std::string& path, std::string_view text,
                           Links links = Links::followed);

}  // namespace tessera::detail
