#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::test {

/// An entry of a tar archive: any name, kind and size, valid or not.
struct TarEntry {
  std::string name;
  std::string bytes = {};
  /// '0' file, '1' hard link, '2' symbolic link, '3' device, '5' folder, '6' pipe, 'x' pax header,
  /// 'L' long name.
  char kind = '0';
  std::string link = {};
  /// Size in the header instead of the real one.
  std::optional<uint64_t> size = std::nullopt;
};

/// Returns a tar archive (ustar) of these entries, with its end mark.
std::string tar_bytes(const std::vector<TarEntry>& entries);

/// Returns the record `key=value` of a pax header, with its length in front.
std::string pax_record(const std::string& key, const std::string& value);

/// Returns `bytes` compressed by gzip.
std::string gzip_bytes(const std::string& bytes);

}  // namespace tessera::test
