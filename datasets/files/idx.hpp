#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// An array of bytes with its shape, row-major.
struct IdxArray {
  Shape shape;
  std::vector<uint8_t> data;
};

/// Reads a file of unsigned bytes in the IDX format of the MNIST site, decompressed if its name
/// ends in .gz. Throws FileError naming the file and the byte offset (in the unpacked data) unless
/// the file has exactly the size that its header declares, at most `max_bytes` of data.
IdxArray read_idx(const std::string& path, uint64_t max_bytes = uint64_t{1} << 32);

}  // namespace tessera::detail
