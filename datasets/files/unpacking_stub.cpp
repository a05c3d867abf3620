// Replaces unpacking.cpp if libarchive is missing.
#include <tessera/datasets/files/unpacking.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

class Unpacking::Reader {};

Unpacking::Unpacking(const std::string& path, PackedFormat format, ReadStored) {
  throw ConfigError(path, "compressed files other than gzip need libarchive",
                    str("a ", name_of(format), " file, and a build without it"),
                    "unpack the file first, or install libarchive-dev and build again");
}

Unpacking::~Unpacking() = default;

size_t Unpacking::read(std::span<std::byte>) { return 0; }

}  // namespace tessera::detail
