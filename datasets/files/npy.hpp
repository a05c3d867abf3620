#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// A NumPy array: numbers in little-endian bytes, or texts.
struct NpyArray {
  std::string dtype;  ///< safetensors' name, such as "F32" or "C64"; empty for texts
  Shape shape;
  bool fortran_order = false;  ///< column-major: the data are those of the transposed array
  std::vector<std::byte> data;
  std::optional<std::vector<std::string>> texts;  ///< an array of texts, in UTF-8 or as stored
};

/// Reads a file that numpy.save() wrote, in any byte order. Throws FileError naming the file, and
/// the byte offset where it applies, for anything else: a dtype that tensors do not have, objects,
/// or a size other than the header declares, at most `max_bytes` of data.
NpyArray read_npy(const std::string& path, uint64_t max_bytes = uint64_t{1} << 36);

/// Parses the bytes of such a file; errors call it `name`. Throws as read_npy() does.
NpyArray parse_npy(std::string_view bytes, const std::string& name);

/// Returns the header of a file for numpy.load(). Throws ConfigError naming `where` for a dtype
/// that NumPy does not have.
std::string npy_header(const std::string& dtype, const Shape& shape, const std::string& where);

/// Writes a file for numpy.load(), atomically. Throws ConfigError for a dtype that NumPy does not
/// have, FileError if it cannot be written.
void write_npy(const std::string& path, const std::string& dtype, const Shape& shape,
               std::span<const std::byte> data);

}  // namespace tessera::detail
