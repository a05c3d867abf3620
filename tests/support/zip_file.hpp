#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::test {

/// CRC-32 of a text.
uint32_t crc(const std::string& text);

/// A number's bytes, the lowest first.
std::string put_number(uint64_t value, int bytes);

/// A member of a zip archive, and what the archive is to say of it that is not so.
struct ZipEntry {
  std::string name;
  std::string text;
  uint16_t method = 0;  ///< 8: deflated
  bool raw = false;     ///< its bytes are the text, whatever the method
  uint32_t mode = 0;    ///< of Unix
  uint16_t flags = 0;
  bool wide = false;        ///< with sizes and place in 64 bits
  size_t extra_bytes = 24;  ///< that are there of these
  std::string behind = {};  ///< bytes that follow its own
  std::string local_extra = {};
  std::optional<std::string> local_name = {};
  std::optional<uint64_t> says_bytes = {}, says_stored = {}, says_offset = {};
  std::optional<uint32_t> says_checksum = {};
};

/// The end of an archive, and what it is to say that is not so.
struct ZipEnd {
  std::string comment = "";
  bool wide = false;  ///< with numbers of 64 bits
  uint16_t disk = 0;
  std::optional<uint64_t> count = {}, bytes = {}, offset = {}, wide_at = {};
};

/// The bytes of an archive.
std::string zip_bytes(const std::vector<ZipEntry>& entries, const ZipEnd& end = {});

}  // namespace tessera::test
