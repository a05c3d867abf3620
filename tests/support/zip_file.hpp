#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::test {

/// Returns the CRC-32 of a text.
uint32_t crc(const std::string& text);

/// Returns a number's bytes in little-endian order.
std::string put_number(uint64_t value, int bytes);

/// A member of a zip archive, with fields that may contradict its content.
struct ZipEntry {
  std::string name;
  std::string text;
  uint16_t method = 0;  ///< compression method; 8: deflated
  bool raw = false;     ///< whether the bytes are the text, whatever the method
  uint32_t mode = 0;    ///< Unix mode
  uint16_t flags = 0;
  bool wide = false;        ///< whether sizes and offset are in 64 bits
  size_t extra_bytes = 24;  ///< how many of these bytes are present
  std::string behind = {};  ///< bytes after its own
  std::string local_extra = {};
  std::optional<std::string> local_name = {};
  std::optional<uint64_t> says_bytes = {}, says_stored = {}, says_offset = {};
  std::optional<uint32_t> says_checksum = {};
};

/// The end of an archive, with fields that may contradict its content.
struct ZipEnd {
  std::string comment = "";
  bool wide = false;  ///< whether its numbers are in 64 bits
  uint16_t disk = 0;
  std::optional<uint64_t> count = {}, bytes = {}, offset = {}, wide_at = {};
};

/// Returns the bytes of an archive.
std::string zip_bytes(const std::vector<ZipEntry>& entries, const ZipEnd& end = {});

}  // namespace tessera::test
