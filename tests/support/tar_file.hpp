#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::test {

/// An entry of a tar archive: any name, kind and size, true or not.
struct TarEntry {
  std::string name;
  std::string bytes = {};
  /// '0' file, '1' hard link, '2' symbolic link, '3' device, '5' folder, '6' pipe, 'x' pax header,
  /// 'L' long name.
  char kind = '0';
  std::string link = {};
  /// What the header says instead of the true size.
  std::optional<uint64_t> size = std::nullopt;
};

/// A tar archive (ustar) of these entries, with its end mark.
std::string tar_bytes(const std::vector<TarEntry>& entries);

/// The record `key=value` of a pax header, with its length in front.
std::string pax_record(const std::string& key, const std::string& value);

/// `bytes` packed by gzip.
std::string gzip_bytes(const std::string& bytes);

}  // namespace tessera::test
