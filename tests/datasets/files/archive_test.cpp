#include <tessera/datasets/files/archive.hpp>

#include <map>
#include <set>
#include <stdexcept>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/tar_file.hpp"

namespace archive_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::gzip_bytes;
using test::tar_bytes;
using test::TarEntry;

namespace {

using Files = std::map<std::string, std::string>;

Files read_all(const std::string& path, const ArchiveLimits& limits = {}) {
  Files files;
  read_archive(
      path, [](std::string_view name) { return !name.ends_with(".skip"); },
      [&](std::string_view name, std::string_view bytes) {
        files.emplace(std::string(name), std::string(bytes));
      },
      limits);
  return files;
}

/// Returns the names of everything below a folder.
std::set<std::string> tree(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    names.insert(entry.path().string());
  }
  return names;
}

/// Returns the text of the FileError from reading these bytes, or "". Checks that nothing was
/// written to the working folder or next to it.
std::string bytes_error(const std::string& bytes, const ArchiveLimits& limits = {}) {
  const test::TempFolder folder;
  std::filesystem::create_directories(folder / "inner/work");
  test::write_file(folder / "inner/a.tar", bytes);
  const std::set<std::string> before = tree(folder.path());
  const std::filesystem::path home = std::filesystem::current_path();
  std::filesystem::current_path(folder / "inner/work");
  std::string text;
  try {
    read_all(folder / "inner/a.tar", limits);
  } catch (const FileError& error) {
    text = error.what();
  }
  std::filesystem::current_path(home);
  CHECK(tree(folder.path()) == before);
  CHECK(text.find('\n') == std::string::npos);
  return text;
}

std::string error_of(const std::vector<TarEntry>& entries, const ArchiveLimits& limits = {}) {
  return bytes_error(tar_bytes(entries), limits);
}

/// Returns an entry with a pax header before it.
std::vector<TarEntry> pax_entry(const std::string& key, const std::string& value) {
  return {{.name = "h", .bytes = test::pax_record(key, value), .kind = 'x'},
          {.name = "a.txt", .bytes = "text"}};
}

const std::vector<TarEntry> good{{.name = "top/", .kind = '5'},
                                 {.name = "top/a.txt", .bytes = "first"},
                                 {.name = "top/big.skip", .bytes = std::string(3000, 'x')},
                                 {.name = "./top//./b.txt", .bytes = std::string(1500, 'b')},
                                 {.name = "empty"}};

}  // namespace

TEST_CASE("selected files of a tar archive are read, plain or gzip, whatever its name") {
  const test::TempFolder folder;
  for (const bool packed : {false, true}) {
    for (const std::string name : {"a.tar", "a.tar.gz", "a.tgz", "a"}) {
      const std::string path = folder / name;
      test::write_file(path, packed ? gzip_bytes(tar_bytes(good)) : tar_bytes(good));
      if (!packed && name == "a.tar") {
        // Padded to whole records, as tar writes it.
        test::write_file(path, tar_bytes(good) + std::string(20480, '\0'));
      }
      const Files files = read_all(path);
      CHECK(files ==
            Files{{"top/a.txt", "first"}, {"top/b.txt", std::string(1500, 'b')}, {"empty", ""}});
    }
  }
  CHECK(error_of(std::vector<TarEntry>{}).empty());
}

TEST_CASE("names of any length are read from GNU and pax headers") {
  const test::TempFolder folder;
  const std::string name = std::string(200, 'n') + "/" + std::string(200, 'm');
  const std::vector<std::vector<TarEntry>> archives{
      pax_entry("path", name),
      {{.name = "././@LongLink", .bytes = name + '\0', .kind = 'L'},
       {.name = "cut", .bytes = "text"}}};
  for (const std::vector<TarEntry>& entries : archives) {
    test::write_file(folder / "a.tar", tar_bytes(entries));
    CHECK(read_all(folder / "a.tar") == Files{{name, "text"}});
  }
  CHECK_THAT(error_of(pax_entry("path", std::string(5000, 'n'))),
             Contains("1 to 4096 bytes") && Contains("5000"));
}

TEST_CASE("names that point outside the archive are refused") {
  for (const std::string name : {"../evil", "a/../../evil", "a/..", "..", "./../evil"}) {
    CHECK_THAT(error_of({{.name = name, .bytes = "x"}}),
               Contains("a.tar, entry \"" + name + "\"] names in an archive stay inside it"));
  }
  CHECK_THAT(error_of({{.name = "/etc/evil", .bytes = "x"}}), Contains("an absolute one"));
  CHECK_THAT(error_of({{.name = "a\\..\\evil", .bytes = "x"}}), Contains("backslash"));
  CHECK_THAT(error_of({{.name = "../evil.skip", .bytes = "x"}}), Contains("stay inside"));
  CHECK_THAT(error_of({{.name = "../evil", .kind = '5'}}), Contains("stay inside"));
  CHECK_THAT(error_of(pax_entry("path", "../evil")), Contains("stay inside"));
  CHECK_THAT(error_of({{.name = "L", .bytes = std::string("../evil\0", 8), .kind = 'L'},
                       {.name = "a", .bytes = "x"}}),
             Contains("stay inside"));
  CHECK_THAT(error_of({{.name = "", .bytes = "x"}}), Contains("1 to 4096 bytes"));
}

TEST_CASE("a name ends at its first NUL") {
  const test::TempFolder folder;
  const std::string hidden("a.txt\0/../../evil", 17);
  for (const auto& entries :
       {std::vector<TarEntry>{{.name = hidden, .bytes = "text"}}, pax_entry("path", hidden)}) {
    test::write_file(folder / "a.tar", tar_bytes(entries));
    CHECK(read_all(folder / "a.tar") == Files{{"a.txt", "text"}});
  }
  CHECK_THAT(error_of({{.name = std::string("../evil\0.txt", 12), .bytes = "x"}}),
             Contains("stay inside"));
}

TEST_CASE("links, devices and sparse files are refused") {
  const TarEntry file{.name = "s/a.txt", .bytes = "x"};
  CHECK_THAT(error_of({{.name = "s", .kind = '2', .link = "/etc"}, file}),
             Contains("entry \"s\"]") && Contains("a symbolic link"));
  CHECK_THAT(error_of({{.name = "h", .kind = '1', .link = "/etc/passwd"}}),
             Contains("a hard link"));
  CHECK_THAT(error_of({file, {.name = "h", .kind = '1', .link = "s/a.txt"}}),
             Contains("a hard link"));
  for (const char kind : {'3', '4', '6'}) {
    CHECK_THAT(error_of({{.name = "d", .kind = kind}}), Contains("a device, pipe or socket"));
  }
  std::vector<TarEntry> sparse = pax_entry("GNU.sparse.map", "0,2,900,2");
  sparse[0].bytes += test::pax_record("GNU.sparse.size", "1000");
  CHECK_THAT(error_of(sparse), Contains("a sparse file"));
}

TEST_CASE("a selected file may occur once") {
  const TarEntry file{.name = "a/b.txt", .bytes = "x"};
  CHECK_THAT(error_of({file, file}), Contains("entry \"a/b.txt\"]") && Contains("twice"));
  CHECK_THAT(error_of({file, {.name = "./a//b.txt"}}), Contains("twice"));
  CHECK(error_of({{.name = "a.skip"}, {.name = "a.skip"}}).empty());
}

TEST_CASE("false sizes are refused") {
  CHECK_THAT(error_of({{.name = "a", .bytes = "x", .size = 100000}}),
             Contains("entry \"a\"]") && Contains("whole tar archive"));
  CHECK_THAT(error_of({{.name = "a", .bytes = "x", .size = 8589934591}}),
             Contains("at most 67108864 bytes. Received: 8589934591"));
  CHECK_FALSE(error_of({{.name = "a.skip", .bytes = "x", .size = 8589934591}}).empty());
  CHECK_FALSE(error_of({{.name = "a", .bytes = std::string(2000, 'x'), .size = 3}}).empty());
  CHECK_FALSE(error_of(pax_entry("size", "99999999999999999999")).empty());
  CHECK_FALSE(error_of(pax_entry("size", "-5")).empty());
}

TEST_CASE("the limits of an archive are enforced") {
  const std::vector<TarEntry> four(4, TarEntry{.name = "a.skip", .bytes = "1234"});
  CHECK(error_of(four, {.entries = 4}).empty());
  CHECK_THAT(error_of(four, {.entries = 3}), Contains("at most 3 entries"));
  const std::vector<TarEntry> one{{.name = "a", .bytes = "1234"}};
  CHECK(error_of(one, {.file_bytes = 4}).empty());
  CHECK_THAT(error_of(one, {.file_bytes = 3}), Contains("at most 3 bytes. Received: 4"));
  CHECK(bytes_error(tar_bytes(one), {.total_bytes = 2048}).empty());
  CHECK_THAT(bytes_error(tar_bytes(one), {.total_bytes = 2047}), Contains("to at most 2047"));
}

TEST_CASE("a gzip bomb is refused before it uses memory") {
  const std::string zeros(size_t{64} << 20, '\0');
  for (const std::string name : {"a.txt", "a.skip"}) {
    const std::string bomb = gzip_bytes(tar_bytes({{.name = name, .bytes = zeros}}));
    REQUIRE(bomb.size() < zeros.size() / 900);
    CHECK_THAT(bytes_error(bomb), Contains("may unpack to at most"));
    CHECK(bytes_error(bomb, {.ratio = 2000}).empty());
  }
  // After the end mark, where no entry is read.
  CHECK_THAT(bytes_error(gzip_bytes(tar_bytes({}) + zeros)), Contains("may unpack to at most"));
}

TEST_CASE("a truncated archive is refused at every length") {
  const std::string plain = tar_bytes({{.name = "a", .bytes = std::string(600, 'x')}});
  // From this length on, all data and one block of the end mark are present.
  const size_t complete = plain.size() - 512;
  for (size_t length = 0; length < complete; length += 37) {
    CAPTURE(length);
    CHECK_FALSE(bytes_error(plain.substr(0, length)).empty());
  }
  CHECK_FALSE(bytes_error(plain.substr(0, complete - 512)).empty());
  CHECK(bytes_error(plain.substr(0, complete)).empty());
  const std::string packed = gzip_bytes(plain);
  for (size_t length = 0; length < packed.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(bytes_error(packed.substr(0, length)).empty());
  }
}

TEST_CASE("damaged bytes and extra bytes after the end are refused") {
  const std::string plain = tar_bytes(good);
  const std::string packed = gzip_bytes(plain);
  const size_t checksum = packed.size() - 8;
  for (size_t i = 10; i < packed.size(); ++i) {
    // The last byte before the checksum may have unused bits.
    if (i + 1 == checksum) continue;
    CAPTURE(i);
    std::string damaged = packed;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    CHECK_FALSE(bytes_error(damaged).empty());
  }
  CHECK_THAT(bytes_error(plain + "PK"), Contains("nothing follows") && Contains("more bytes"));
  CHECK_FALSE(bytes_error(plain + plain).empty());
  CHECK_FALSE(bytes_error(packed + "PK").empty());
  CHECK_THAT(bytes_error(std::string(5000, 'x')), Contains("whole tar archive"));
  CHECK_FALSE(bytes_error("#!/bin/sh\n").empty());
}

TEST_CASE("other formats and compressions are refused") {
  CHECK_FALSE(bytes_error("PK\x03\x04" + std::string(600, 'x')).empty());
  CHECK_FALSE(bytes_error("070701" + std::string(600, '0')).empty());
  CHECK_FALSE(bytes_error("!<arch>\n" + std::string(600, ' ')).empty());
  CHECK_FALSE(bytes_error(std::string("\xfd"
                                      "7zXZ\0",
                                      6) +
                          std::string(600, 'x'))
                  .empty());
  CHECK_FALSE(bytes_error(gzip_bytes(gzip_bytes(tar_bytes(good)))).empty());
  const test::TempFolder folder;
  CHECK_THROWS_WITH(read_all(folder / "none.tar"), Contains("No such file"));
  CHECK_THROWS_WITH(read_all(folder.path()), Contains("a folder"));
}

TEST_CASE("an exception of the user's callback passes through") {
  const test::TempFolder folder;
  test::write_file(folder / "a.tar", tar_bytes(good));
  const auto stop = [](std::string_view, std::string_view) { throw std::runtime_error("mine"); };
  CHECK_THROWS_WITH(read_archive(
                        folder / "a.tar", [](std::string_view) { return true; }, stop),
                    "mine");
}

}  // namespace archive_test
