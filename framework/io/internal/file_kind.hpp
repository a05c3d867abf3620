#pragma once

#include <cstdint>
#include <string>

namespace tessera::detail {

/// The formats that the first bytes of a file tell apart.
enum class FileKind : uint8_t { hdf5, zip, other };

/// Returns the format of a file by its first bytes, whatever its name; `other` for a folder and for
/// a file that cannot be read.
FileKind file_kind(const std::string& path);

}  // namespace tessera::detail
