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
  uint64_t offset = 0;    ///< of its bytes in the archive
  uint64_t stored = 0;    ///< how many bytes of the archive it takes
  uint64_t bytes = 0;     ///< how many it has; more where it is packed
  uint32_t checksum = 0;  ///< CRC-32 of the bytes
  bool packed = false;    ///< by deflate; otherwise its bytes lie in the archive as they are
  bool wide = false;      ///< whether its header is to have room for sizes of 4 GiB and more
};

/// A zip archive that nobody vouches for, as Python's zipfile writes them: read without unpacking
/// more than what is asked for. Every failure is a FileError naming the archive. Refused are names
/// that lead out of a folder, links, encryption, members that overlap or have one name, and other
/// ways of packing than deflate.
class ZipArchive {
 public:
  /// `fix`: what to do about an archive that is refused.
  explicit ZipArchive(const std::string& path,
                      std::string fix = "save the model anew with Keras or Tessera");

  const std::string& path() const { return path_; }
  /// Its files, in the order of its directory; folders are none.
  const std::vector<ZipMember>& members() const { return members_; }
  /// The one of that name, or nullptr.
  const ZipMember* find(std::string_view name) const;

  /// A member's bytes, unpacked, whose checksum is verified. Throws FileError for more than
  /// `most_bytes`.
  std::string read(const ZipMember& member, uint64_t most_bytes) const;
  /// A packed member unpacked into a file without a name, whose checksum is verified. Refuses more
  /// than 4 GiB that are more than 100 times what is stored.
  std::shared_ptr<const FileDescriptor> unpack(const ZipMember& member) const;
  const std::shared_ptr<const FileDescriptor>& file() const { return file_; }

 private:
  void read_directory();
  void check_place(ZipMember& member) const;
  void unpack(const ZipMember& member, const std::function<void(std::string_view)>& take) const;
  std::string bytes_at(uint64_t offset, uint64_t count) const;
  [[noreturn]] void fail(const std::string& expected, const std::string& received) const;

  std::string path_;
  std::string fix_;
  std::shared_ptr<const FileDescriptor> file_;
  uint64_t size_ = 0;
  std::vector<ZipMember> members_;
};

/// What stands before a member's bytes in an archive that is written: of a member of these bytes
/// and checksum, stored.
std::string zip_header(const ZipMember& member);
/// What stands at the end of an archive of these members, from byte `offset` on.
std::string zip_directory(const std::vector<ZipMember>& members, uint64_t offset);

}  // namespace tessera::detail
