#include "tests/support/zip_file.hpp"

#include <zlib.h>

#include <stdexcept>

namespace tessera::test {
namespace {

std::string deflated(const std::string& text) {
  z_stream stream{};
  if (::deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflate");
  }
  std::string out(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate");
  return out;
}

}  // namespace

uint32_t crc(const std::string& text) {
  return static_cast<uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

std::string put_number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string zip_bytes(const std::vector<ZipEntry>& entries, const ZipEnd& end) {
  constexpr uint64_t elsewhere = 0xffffffff;
  std::string bytes, directory;
  for (const ZipEntry& entry : entries) {
    const bool packed = entry.method == 8 && !entry.raw;
    const std::string stored = packed ? deflated(entry.text) : entry.text;
    const uint64_t offset = entry.says_offset.value_or(bytes.size());
    const uint64_t sizes[] = {entry.says_bytes.value_or(entry.text.size()),
                              entry.says_stored.value_or(stored.size()), offset};
    const std::string common = put_number(entry.flags, 2) + put_number(entry.method, 2) +
                               put_number(0x210000, 4) +
                               put_number(entry.says_checksum.value_or(crc(entry.text)), 4) +
                               put_number(entry.wide ? elsewhere : sizes[1], 4) +
                               put_number(entry.wide ? elsewhere : sizes[0], 4);
    std::string extra;
    if (entry.wide) {
      for (const uint64_t size : sizes) extra += put_number(size, 8);
      extra.resize(entry.extra_bytes);
      // Another extra field comes first.
      extra = put_number(0x5455, 2) + put_number(1, 2) + "t" + put_number(1, 2) +
              put_number(extra.size(), 2) + extra;
    }
    const std::string local_name = entry.local_name.value_or(entry.name);
    bytes += "PK\3\4" + put_number(20, 2) + common + put_number(local_name.size(), 2) +
             put_number(entry.local_extra.size(), 2) + local_name + entry.local_extra + stored +
             entry.behind;
    directory += "PK\1\2" + put_number(3 << 8 | 20, 2) + put_number(20, 2) + common +
                 put_number(entry.name.size(), 2) + put_number(extra.size(), 2) + put_number(0, 6) +
                 put_number(uint64_t{entry.mode} << 16, 4) +
                 put_number(entry.wide ? elsewhere : offset, 4) + entry.name + extra;
  }
  const uint64_t count = end.count.value_or(entries.size());
  const uint64_t size = end.bytes.value_or(directory.size());
  const uint64_t offset = end.offset.value_or(bytes.size());
  const uint64_t wide_at = end.wide_at.value_or(bytes.size() + directory.size());
  bytes += directory;
  if (end.wide) {
    bytes += "PK\6\6" + put_number(44, 8) + put_number(45, 2) + put_number(45, 2) +
             put_number(0, 8) + put_number(count, 8) + put_number(count, 8) + put_number(size, 8) +
             put_number(offset, 8) + "PK\6\7" + put_number(0, 4) + put_number(wide_at, 8) +
             put_number(1, 4);
  }
  return bytes + "PK\5\6" + put_number(end.disk, 2) + put_number(end.disk, 2) +
         put_number(end.wide ? 0xffff : count, 2) + put_number(end.wide ? 0xffff : count, 2) +
         put_number(end.wide ? elsewhere : size, 4) + put_number(end.wide ? elsewhere : offset, 4) +
         put_number(end.comment.size(), 2) + end.comment;
}

}  // namespace tessera::test
