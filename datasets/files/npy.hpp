#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// An array of NumPy's: numbers of one kind, row-major, the lowest byte first.
struct NpyArray {
  std::string dtype;  ///< as safetensors has it, "F32"
  Shape shape;
  std::vector<std::byte> data;
};

/// Reads a file that numpy.save() wrote. Throws FileError naming the file and the byte offset for
/// anything else: numbers of kinds that tensors do not have, another order of axes or bytes,
/// objects, or other than exactly the bytes that the header declares, which are at most
/// `max_bytes`.
NpyArray read_npy(const std::string& path, uint64_t max_bytes = uint64_t{1} << 36);

/// The same of a file's bytes, which `name` names in errors.
NpyArray parse_npy(std::string_view bytes, const std::string& name);

/// What stands before the numbers in a file that numpy.load() reads. Throws ConfigError naming
/// `where` for a dtype that NumPy does not have.
std::string npy_header(const std::string& dtype, const Shape& shape, const std::string& where);

/// Writes a file that numpy.load() reads, in one step. Throws ConfigError for a dtype that NumPy
/// does not have, FileError if it cannot be written.
void write_npy(const std::string& path, const std::string& dtype, const Shape& shape,
               std::span<const std::byte> data);

}  // namespace tessera::detail
