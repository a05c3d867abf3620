#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <tessera/datasets/files/archive.hpp>
#include <tessera/framework/base/error.hpp>

#include "tests/fuzz/memory_file.hpp"
#include "tests/support/tar_file.hpp"

using namespace tessera;
using namespace tessera::detail;

namespace {

constexpr size_t block = 512;
constexpr size_t checksum_begin = 148;
constexpr size_t checksum_end = 156;

/// Sets the checksum of every block that looks like a header; mutations would hardly ever find it.
void repair(std::string& tar) {
  for (size_t start = 0; start + block <= tar.size(); start += block) {
    if (tar.compare(start + 257, 5, "ustar") != 0) continue;
    unsigned sum = 0;
    for (size_t i = 0; i < block; ++i) {
      const bool own = i >= checksum_begin && i < checksum_end;
      sum += own ? ' ' : static_cast<uint8_t>(tar[start + i]);
    }
    char text[checksum_end - checksum_begin + 1];
    std::snprintf(text, sizeof text, "%06o", sum);
    text[7] = ' ';
    tar.replace(start + checksum_begin, checksum_end - checksum_begin, text,
                checksum_end - checksum_begin);
  }
}

}  // namespace

/// The bits of the first byte say whether the rest is repaired (1) and compressed (2).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static fuzz::MemoryFile file;
  std::string tar(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] & 1) repair(tar);
  if (data[0] & 2) tar = test::gzip_bytes(tar);
  const ArchiveLimits limits{.file_bytes = 1 << 20, .total_bytes = 1 << 22, .entries = 1000};
  std::set<std::string> names;
  try {
    read_archive(
        file.set({reinterpret_cast<const uint8_t*>(tar.data()), tar.size()}),
        [](std::string_view name) { return !name.ends_with(".skip"); },
        [&](std::string_view name, std::string_view bytes) {
          const std::string safe = "/" + std::string(name) + "/";
          fuzz::require(bytes.size() <= limits.file_bytes && names.insert(safe).second);
          fuzz::require(safe.find("/../") == std::string::npos);
          fuzz::require(safe.find("//") == std::string::npos);
          fuzz::require(safe.find('\\') == std::string::npos);
        },
        limits);
  } catch (const FileError&) {
  }
  return 0;
}
