#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {

/// A file in a zip archive.
struct ZipMember {
  std::string name;       ///< relative, with "/" between folders
  uint64_t offset = 0;    ///< offset of its bytes in the archive
  uint64_t stored = 0;    ///< size in the archive
  uint64_t bytes = 0;     ///< uncompressed size
  uint32_t checksum = 0;  ///< CRC-32 of the uncompressed bytes
  bool packed = false;    ///< whether it is compressed (deflate) rather than stored
  bool wide = false;      ///< whether its header has zip64 sizes, for 4 GiB and more
};

/// Reads untrusted zip archives as Python's zipfile writes them; decompresses only what is asked
/// for. Every failure is a FileError naming the archive. Refuses names outside the archive's
/// folder, links, encryption, overlapping or duplicate members, and compression methods other than
/// deflate.
class ZipArchive {
 public:
  /// Opens an archive. `fix` is the advice in errors.
  explicit ZipArchive(const std::string& path,
                      std::string fix = "save the model again with Keras or Tessera");

  const std::string& path() const { return path_; }
  /// Returns the files in the order of the central directory, without folders.
  const std::vector<ZipMember>& members() const { return members_; }
  /// Returns the member called `name`, or nullptr.
  const ZipMember* find(std::string_view name) const;

  /// Returns a member's uncompressed bytes and verifies their checksum. Throws FileError if they
  /// are more than `max_bytes`.
  std::string read(const ZipMember& member, uint64_t max_bytes) const;
  /// Decompresses a member into an unnamed temporary file and verifies its checksum. Refuses more
  /// than 4 GiB that are also more than 100 times the stored size.
  std::shared_ptr<const FileDescriptor> unpack(const ZipMember& member) const;
  const std::shared_ptr<const FileDescriptor>& file() const { return file_; }

 private:
  void read_directory();
  void check_local_header(ZipMember& member) const;
  void unpack(const ZipMember& member, const std::function<void(std::string_view)>& take) const;
  std::string bytes_at(uint64_t offset, uint64_t count) const;
  [[noreturn]] void fail(const std::string& expected, const std::string& received) const;

  std::string path_;
  std::string fix_;
  std::shared_ptr<const FileDescriptor> file_;
  uint64_t size_ = 0;
  std::vector<ZipMember> members_;
};

/// Returns the local header of a stored member with these bytes and checksum.
std::string zip_header(const ZipMember& member);
/// Returns the central directory and end record of an archive of these members, written at
/// `offset`.
std::string zip_directory(const std::vector<ZipMember>& members, uint64_t offset);

}  // namespace tessera::detail
