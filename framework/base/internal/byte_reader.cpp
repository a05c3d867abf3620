#include <tessera/framework/base/internal/byte_reader.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

void fail_at(const std::string& file, uint64_t offset, const std::string& expected,
             const std::string& received) {
  throw FileError(str(file, ", byte ", offset), expected, received,
                  "the file is damaged or of another kind; fetch or write it again");
}

ByteReader::ByteReader(std::span<const std::byte> bytes, std::string file)
    : bytes_(bytes), file_(std::move(file)) {}

uint8_t ByteReader::u8(const std::string& what) { return static_cast<uint8_t>(take(1, what)[0]); }

uint32_t ByteReader::u32_big_endian(const std::string& what) {
  uint32_t value = 0;
  for (std::byte b : take(4, what)) value = value << 8 | static_cast<uint32_t>(b);
  return value;
}

uint64_t ByteReader::u64_little_endian(const std::string& what) {
  uint64_t value = 0;
  int shift = 0;
  for (std::byte b : take(8, what)) {
    value |= static_cast<uint64_t>(b) << shift;
    shift += 8;
  }
  return value;
}

std::span<const std::byte> ByteReader::take(uint64_t count, const std::string& what) {
  if (count > remaining()) {
    fail(str(what, " needs ", count, " bytes"), str("the file ends ", remaining(), " bytes on"));
  }
  const auto bytes = bytes_.subspan(offset_, count);
  offset_ += count;
  return bytes;
}

void ByteReader::fail(const std::string& expected, const std::string& received) const {
  fail_at(file_, offset_, expected, received);
}

}  // namespace tessera::detail
