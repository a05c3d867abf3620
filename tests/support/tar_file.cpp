#include "tests/support/tar_file.hpp"

#include <zlib.h>

#include <cstdio>
#include <stdexcept>

namespace tessera::test {
namespace {

constexpr size_t block = 512;

std::string octal(uint64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(value));
  return text;
}

std::string header(const TarEntry& entry) {
  std::string bytes(block, '\0');
  const auto put = [&](size_t offset, const std::string& text) {
    bytes.replace(offset, text.size(), text);
  };
  put(0, entry.name.substr(0, 100));
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, octal(entry.size.value_or(entry.bytes.size()), 11));
  put(136, octal(0, 11));
  put(148, "        ");
  bytes[156] = entry.kind;
  put(157, entry.link.substr(0, 100));
  put(257, std::string("ustar\00000", 8));
  put(329, "0000000");
  put(337, "0000000");
  uint64_t sum = 0;
  for (char c : bytes) sum += static_cast<uint8_t>(c);
  put(148, octal(sum, 6) + std::string(1, '\0'));
  return bytes;
}

}  // namespace

std::string tar_bytes(const std::vector<TarEntry>& entries) {
  std::string archive;
  for (const TarEntry& entry : entries) {
    archive += header(entry) + entry.bytes;
    archive.resize((archive.size() + block - 1) / block * block);
  }
  return archive + std::string(2 * block, '\0');
}

std::string pax_record(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  size_t length = rest.size();
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

std::string gzip_bytes(const std::string& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  std::string input = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace tessera::test
