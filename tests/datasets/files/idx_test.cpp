#include <tessera/datasets/files/idx.hpp>

#include <zlib.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace idx_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

/// Returns an IDX file with this magic number and these extents, followed by `data`.
std::string idx(uint32_t magic, const std::vector<uint32_t>& extents, const std::string& data) {
  std::string bytes = big_endian(magic);
  for (uint32_t extent : extents) bytes += big_endian(extent);
  return bytes + data;
}

/// Returns the text of the FileError from reading these bytes; "" if they are read.
std::string error_of(const std::string& bytes, uint64_t max_bytes = uint64_t{1} << 32) {
  const test::TempFolder folder;
  const std::string path = (folder / "a-idx").string();
  test::write_file(path, bytes);
  try {
    read_idx(path, max_bytes);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

void write_gzip(const std::string& path, const std::string& bytes) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

}  // namespace

TEST_CASE("IDX files are read plain and gzipped") {
  const test::TempFolder folder;
  const std::string bytes = idx(0x803, {2, 1, 3}, "abcdef");
  for (const std::string name : {"images", "images.gz"}) {
    const std::string path = (folder / name).string();
    if (name == "images") {
      test::write_file(path, bytes);
    } else {
      write_gzip(path, bytes);
    }
    const IdxArray array = read_idx(path);
    CHECK(array.shape == Shape{2, 1, 3});
    CHECK(std::string(array.data.begin(), array.data.end()) == "abcdef");
  }
  CHECK(error_of(idx(0x801, {0}, "")).empty());
}

TEST_CASE("a damaged IDX file is refused with file, offset and reason") {
  CHECK_THAT(error_of(""), Contains("a-idx, byte 0] the IDX magic number needs 4 bytes"));
  CHECK_THAT(error_of(idx(0x903, {1, 1, 1}, "a")), Contains("byte 0] an IDX file of unsigned"));
  CHECK_THAT(error_of(idx(0x1000801, {1}, "a")), Contains("byte 0]"));
  CHECK_THAT(error_of(idx(0x800, {}, "a")), Contains("byte 0]"));
  CHECK_THAT(error_of("\x1f\x8b\x08\x01"), Contains("Received: magic number 529205249"));
  CHECK_THAT(error_of(idx(0x803, {1, 1}, "ab")), Contains("byte 12] the extent of axis 2"));
  CHECK_THAT(error_of(idx(0x801, {5}, "abcd")),
             Contains("byte 12] shape (5,) needs 13 bytes. Received: the file ends here"));
  CHECK_THAT(error_of(idx(0x801, {5}, "abcdef")),
             Contains("byte 13] shape (5,) needs 13 bytes. Received: more bytes"));
}

TEST_CASE("an IDX header cannot make the reader allocate much memory") {
  CHECK_THAT(error_of(idx(0x803, {UINT32_MAX, UINT32_MAX, UINT32_MAX}, "a")),
             Contains("at most 4294967296 bytes"));
  CHECK_THAT(error_of(idx(0x804, {65536, 65536, 65536, 65536}, "a")), Contains("at most"));
  CHECK_THAT(error_of(idx(0x803, {1000, 28, 28}, "a"), 783999), Contains("shape (1000, 28, 28)"));
  CHECK_THAT(error_of(idx(0x802, {65535, 65535}, "a")), Contains("the file ends here"));
  const test::TempFolder folder;
  const std::string path = (folder / "a.gz").string();
  write_gzip(path, idx(0x802, {65535, 65535}, "a"));
  CHECK_THROWS_WITH(read_idx(path), Contains("the file ends here"));
  write_gzip(path, idx(0x801, {10}, std::string(100000000, '\0')));
  CHECK_THROWS_WITH(read_idx(path), Contains("byte 18] ") && Contains("more bytes"));
}

TEST_CASE("a truncated IDX file is refused at every length") {
  const test::TempFolder folder;
  const std::string bytes = idx(0x803, {2, 2, 3}, "abcdefghijkl");
  for (size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(error_of(bytes.substr(0, length)).empty());
    const std::string path = (folder / "cut.gz").string();
    write_gzip(path, bytes.substr(0, length));
    CHECK_THROWS_AS(read_idx(path), FileError);
  }
  CHECK(error_of(bytes).empty());
}

}  // namespace idx_test
