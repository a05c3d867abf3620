// Replaces archive.cpp if libarchive is missing.
#include <tessera/datasets/files/archive.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

void read_archive(const std::string& path, const std::function<bool(std::string_view name)>&,
                  const std::function<void(std::string_view name, std::string_view bytes)>&,
                  const ArchiveLimits&) {
  throw ConfigError(path, "archives need libarchive", "a build without it",
                    "unpack the archive first, or install libarchive-dev and build again");
}

}  // namespace tessera::detail
