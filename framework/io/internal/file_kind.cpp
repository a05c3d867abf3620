#include <tessera/framework/io/internal/file_kind.hpp>

#include <fstream>
#include <string_view>

namespace tessera::detail {

FileKind file_kind(const std::string& path) {
  constexpr std::string_view hdf5_signature = "\x89HDF\r\n\x1a\n", zip_signature = "PK\x03\x04";
  std::ifstream stream(path, std::ios::binary);
  char bytes[hdf5_signature.size()] = {};
  stream.read(bytes, sizeof bytes);
  const std::string_view start(bytes, static_cast<size_t>(stream.gcount()));
  if (start == hdf5_signature) return FileKind::hdf5;
  return start.starts_with(zip_signature) ? FileKind::zip : FileKind::other;
}

}  // namespace tessera::detail
