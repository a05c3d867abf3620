#include <tessera/datasets/files/idx.hpp>

#include <algorithm>
#include <array>
#include <span>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/file.hpp>

namespace tessera::detail {
namespace {

constexpr size_t magic_bytes = 4;
constexpr size_t extent_bytes = 4;
constexpr uint8_t unsigned_byte = 0x08;

/// Reads the shape from the header: two zero bytes, the element type, the rank, then the extents.
Shape read_header(InputFile& file, const std::string& path) {
  std::array<std::byte, magic_bytes + extent_bytes * UINT8_MAX> buffer;
  const std::span bytes(buffer);
  const size_t first = file.read(bytes.first(magic_bytes));
  ByteReader magic(bytes.first(first), path);
  const uint32_t number = magic.u32_big_endian("the IDX magic number");
  const uint32_t rank = number & 0xff;
  if (number >> 8 != unsigned_byte || rank == 0) {
    fail_at(path, 0, "an IDX file of unsigned bytes begins with 00 00 08 and its number of axes",
            str("magic number ", number));
  }
  const size_t rest = file.read(bytes.subspan(magic_bytes, rank * extent_bytes));
  ByteReader reader(bytes.first(magic_bytes + rest), path);
  reader.take(magic_bytes, "the IDX magic number");
  Shape shape;
  for (uint32_t axis = 0; axis < rank; ++axis) {
    shape.push_back(reader.u32_big_endian(str("the extent of axis ", axis)));
  }
  return shape;
}

uint64_t element_count(const Shape& shape, const std::string& path, uint64_t max_bytes) {
  std::optional<uint64_t> count = 1;
  for (int64_t extent : shape) {
    if (count) count = checked_mul(*count, static_cast<uint64_t>(extent));
  }
  if (!count || *count > max_bytes) {
    fail_at(path, magic_bytes, str("an IDX file may hold at most ", max_bytes, " bytes"),
            str("shape ", to_string(shape)));
  }
  return *count;
}

}  // namespace

IdxArray read_idx(const std::string& path, uint64_t max_bytes) {
  InputFile file(path);
  IdxArray array;
  array.shape = read_header(file, path);
  const uint64_t count = element_count(array.shape, path, max_bytes);
  const uint64_t header = magic_bytes + extent_bytes * array.shape.size();
  const std::string expected =
      str("shape ", to_string(array.shape), " needs ", header + count, " bytes");
  // Checked before memory is allocated: a file of this size cannot hold as much.
  if (header + count > file.size_bound()) {
    fail_at(path, file.stored_size(), expected, "the file ends here");
  }
  array.data.resize(count);
  const size_t got = file.read(std::as_writable_bytes(std::span(array.data)));
  if (got < count) fail_at(path, header + got, expected, "the data end here");
  std::byte extra{};
  if (file.read(std::span(&extra, 1)) > 0) fail_at(path, header + got, expected, "more bytes");
  return array;
}

}  // namespace tessera::detail
