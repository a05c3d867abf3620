#include <tessera/framework/base/internal/file.hpp>

#include <sys/stat.h>
#include <zlib.h>

#include <array>
#include <chrono>
#include <filesystem>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/files.hpp"
#include "tests/support/owners.hpp"

namespace file_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// Returns `text` as a gzip file.
std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  std::string input = text;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

size_t file_count(const test::TempFolder& folder) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    count += entry.exists();
  }
  return count;
}

mode_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

}  // namespace

TEST_CASE("a byte reader reads in order and stops at the end") {
  const std::array<std::byte, 13> bytes{std::byte{1},   std::byte{0}, std::byte{0}, std::byte{8},
                                        std::byte{3},   std::byte{2}, std::byte{1}, std::byte{0},
                                        std::byte{0},   std::byte{0}, std::byte{0}, std::byte{0},
                                        std::byte{0x80}};
  ByteReader reader(bytes, "a.bin");
  CHECK(reader.u8("a flag") == 1);
  CHECK(reader.u32_big_endian("a number") == 0x00000803);
  CHECK(reader.u64_little_endian("a length") == 0x8000000000000102);
  CHECK(reader.remaining() == 0);
  CHECK_THROWS_WITH(reader.u8("a tail"), Contains("[a.bin, byte 13] a tail needs 1 bytes"));
  ByteReader other(bytes, "a.bin");
  CHECK_THROWS_AS(other.take(UINT64_MAX, "all"), FileError);
  CHECK(other.offset() == 0);
}

TEST_CASE("checked arithmetic reports overflow") {
  CHECK(checked_mul(uint64_t{1} << 32, (uint64_t{1} << 32) - 1).has_value());
  CHECK_FALSE(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32).has_value());
  CHECK(checked_add(UINT64_MAX - 1, 1) == UINT64_MAX);
  CHECK_FALSE(checked_add(UINT64_MAX, 1).has_value());
}

TEST_CASE("files are read raw and decompressed") {
  const test::TempFolder folder;
  std::string text;
  for (int i = 0; i < 200000; ++i) text += std::to_string(i);
  const std::string plain = (folder / "a.txt").string();
  const std::string packed = (folder / "a.gz").string();
  test::write_file(plain, text);
  CHECK(read_file(plain) == text);
  CHECK(read_file(plain, text.size()) == text);
  CHECK_THROWS_WITH(read_file(plain, text.size() - 1), Contains("at most"));
  test::write_file(packed, gzip(text));
  CHECK(read_file(packed) == text);
  CHECK_THROWS_WITH(read_file(packed, text.size() - 1), Contains("at most"));
  test::write_file(packed, gzip(text) + gzip("more"));
  CHECK(read_file(packed) == text + "more");
  test::write_file(packed, gzip(""));
  CHECK(read_file(packed).empty());
}

TEST_CASE("a damaged gzip file is refused") {
  const test::TempFolder folder;
  const std::string path = (folder / "a.gz").string();
  const std::string good = gzip("a text to be packed");
  for (size_t length = 0; length < good.size(); ++length) {
    CAPTURE(length);
    test::write_file(path, good.substr(0, length));
    CHECK_THROWS_WITH(read_file(path), Contains("a.gz, byte "));
  }
  test::write_file(path, good + "x");
  CHECK_THROWS_AS(read_file(path), FileError);
  test::write_file(path, "not packed at all");
  CHECK_THROWS_AS(read_file(path), FileError);
  std::string wrong_sum = good;
  wrong_sum[good.size() - 8] ^= 1;
  test::write_file(path, wrong_sum);
  CHECK_THROWS_WITH(read_file(path), Contains("incorrect data check"));
}

TEST_CASE("an unreadable file is a FileError with the reason") {
  const test::TempFolder folder;
  CHECK_THROWS_WITH(read_file((folder / "none").string()), Contains("No such file or directory"));
  CHECK_THROWS_WITH(read_file(folder.path().string()), Contains("a folder"));
  CHECK_THROWS_AS(read_file("/dev/null"), FileError);
  CHECK_THROWS_AS(read_file(""), FileError);
  CHECK(exists(folder.path().string()));
  CHECK_FALSE(exists((folder / "none").string()));
}

TEST_CASE("a file is replaced atomically") {
  const test::TempFolder folder;
  const std::string path = (folder / "a.json").string();
  write_file_atomically(path, "first");
  CHECK(test::read_file(path) == "first");
  const mode_t mask = umask(0);
  umask(mask);
  CHECK(mode_of(path) == (0666 & ~mask));
  chmod(path.c_str(), 0640);
  write_file_atomically(path, "");
  CHECK(test::read_file(path).empty());
  CHECK(mode_of(path) == 0640);
  const std::string text = "second";
  const auto bytes = std::as_bytes(std::span(text));
  const std::array<std::span<const std::byte>, 3> parts{bytes.first(3), bytes.first(0),
                                                        bytes.subspan(3)};
  write_file_atomically(path, parts);
  CHECK(test::read_file(path) == "second");
  CHECK(file_count(folder) == 1);
}

TEST_CASE("a link is followed when its file is replaced") {
  const test::TempFolder folder;
  const std::string target = (folder / "target").string();
  const std::string link = (folder / "link").string();
  test::write_file(target, "old");
  std::filesystem::create_symlink(target, link);
  write_file_atomically(link, "new");
  CHECK(test::read_file(target) == "new");
  CHECK(std::filesystem::is_symlink(link));
}

TEST_CASE("a link that another user planted is replaced, not followed") {
  const test::TempFolder folder;
  const std::string target = (folder / "target").string();
  const std::string link = (folder / "link").string();
  test::write_file(target, "old");
  chmod(target.c_str(), 0777);
  std::filesystem::create_symlink(target, link);
  write_file_atomically(link, "new", Links::replaced);
  CHECK(test::read_file(target) == "old");
  CHECK_FALSE(std::filesystem::is_symlink(link));
  CHECK(test::read_file(link) == "new");
  CHECK((mode_of(link) & 0111) == 0);
  CHECK_THROWS_AS(write_file_atomically(folder.path().string(), "x", Links::replaced), FileError);
}

TEST_CASE("a failed write leaves the old file and no temporary file") {
  const test::TempFolder folder;
  const std::string path = (folder / "a.bin").string();
  write_file_atomically(path, "old");
  {
    const test::FileSizeLimit limit(100000);
    CHECK_THROWS_WITH(write_file_atomically(path, std::string(200000, 'x')),
                      Contains("a.bin") && Contains("File too large"));
    CHECK_THROWS_AS(write_file_atomically((folder / "b.bin").string(), std::string(200000, 'x')),
                    FileError);
  }
  CHECK(test::read_file(path) == "old");
  CHECK(file_count(folder) == 1);
}

TEST_CASE("a write removes abandoned temporary files, and only those") {
  const test::TempFolder folder;
  const auto name = [](const std::string& number) { return ".tessera-" + number + ".tmp"; };
  const std::string ended = folder / name(test::ended_number());
  const std::string old = folder / name(test::elsewhere_number());
  const std::string young = folder / name(test::elsewhere_number(1));
  const std::string own = folder / new_temporary_name();
  const std::string earlier = folder / ".tessera-12-3.tmp", other = folder / ".tessera-x.tmp";
  for (const std::string& path : {ended, old, young, own, earlier, other}) {
    test::write_file(path, "part");
  }
  std::filesystem::create_directory(folder / name(test::ended_number(1)));
  std::filesystem::last_write_time(
      old, std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  write_file_atomically(folder / "a", "x");
  for (const std::string& path : {ended, old}) CHECK_FALSE(exists(path));
  for (const std::string& path : {young, own, earlier, other}) CHECK(exists(path));
  CHECK(exists(folder / name(test::ended_number(1))));
}

TEST_CASE("only a regular file in an existing folder can be written") {
  const test::TempFolder folder;
  CHECK_THROWS_WITH(write_file_atomically((folder / "no/a").string(), "x"),
                    Contains("No such file or directory"));
  CHECK_THROWS_WITH(write_file_atomically(folder.path().string(), "x"), Contains("a folder"));
  CHECK_THROWS_AS(write_file_atomically("/dev/null", "x"), FileError);
  CHECK_THROWS_AS(write_file_atomically("", "x"), FileError);
  CHECK_THROWS_AS(write_file_atomically((folder / std::string(300, 'n')).string(), "x"), FileError);
  CHECK(file_count(folder) == 0);
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace file_test
