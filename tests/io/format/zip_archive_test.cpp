#include <tessera/framework/io/format/zip_archive.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <functional>

#include <tessera/framework/base/error.hpp>

#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/zip_file.hpp"

namespace zip_archive_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::put_number;
using test::zip_bytes;
using test::ZipEntry;

namespace {

constexpr uint64_t most = 1 << 20;

class Archive {
 public:
  explicit Archive(const std::string& bytes) : path_(folder_ / "case.keras") {
    test::write_file(path_, bytes);
  }
  const std::string& path() const { return path_; }
  ZipArchive open() const { return ZipArchive(path_); }

  /// Returns the error of opening the archive and reading all its members.
  std::string error() const {
    return test::error_line([&] {
      const ZipArchive archive(path_);
      for (const ZipMember& member : archive.members()) archive.read(member, most);
    });
  }

 private:
  test::TempFolder folder_;
  std::string path_;
};

std::string error_of(const std::vector<ZipEntry>& entries) {
  return Archive(zip_bytes(entries)).error();
}

std::string read(const ZipArchive& archive, const std::string& name) {
  const ZipMember* member = archive.find(name);
  REQUIRE(member != nullptr);
  return archive.read(*member, most);
}

std::string text_of(const FileDescriptor& file) {
  std::string text(100000, '\0');
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(count < 0 ? 0 : static_cast<size_t>(count));
  return text;
}

const std::vector<ZipEntry> model{
    {.name = "config.json", .text = "{}"},
    {.name = "assets/", .text = ""},
    {.name = "assets/v.txt", .text = std::string(5000, 'a') + "b", .method = 8},
    {.name = "model.weights.h5", .text = "weights"}};

}  // namespace

TEST_CASE("members are found with their bytes and offsets, stored or compressed") {
  const Archive file(zip_bytes(model));
  const ZipArchive archive = file.open();
  REQUIRE(archive.members().size() == 3);
  CHECK(archive.path() == file.path());
  CHECK(archive.members()[0].name == "config.json");
  CHECK(archive.find("assets/") == nullptr);
  CHECK(archive.find("config") == nullptr);
  CHECK(read(archive, "config.json") == "{}");
  CHECK(read(archive, "assets/v.txt") == model[2].text);
  const ZipMember& weights = *archive.find("model.weights.h5");
  CHECK_FALSE(weights.packed);
  CHECK(weights.bytes == 7);
  CHECK(test::read_file(file.path()).substr(weights.offset, 7) == "weights");
  const ZipMember& packed = *archive.find("assets/v.txt");
  CHECK(packed.packed);
  CHECK(packed.stored < 100);
  CHECK(text_of(*archive.unpack(packed)) == model[2].text);
  CHECK_THAT(test::error_line([&] { archive.read(packed, 5000); }),
             Contains("at most 5000 bytes of \"assets/v.txt\". Received: 5001."));
}

TEST_CASE("an archive with any number of members, a comment or gaps is read") {
  CHECK(Archive(zip_bytes({})).open().members().empty());
  const auto count = [](const std::string& comment) {
    return Archive(zip_bytes(model, {.comment = comment})).open().members().size();
  };
  CHECK(count(std::string(65535, 'c')) == 3);
  // A comment that looks like an end record but does not reach the end of the file.
  CHECK(count("PK\5\6" + std::string(18, '\0') + "x") == 3);
  // Streaming writers repeat the sizes after a member.
  CHECK(Archive(zip_bytes({{.name = "a", .text = "A", .behind = std::string(16, 'd')},
                           {.name = "b", .text = "B"}}))
            .open()
            .members()
            .size() == 2);
  std::vector<ZipEntry> many;
  for (int i = 0; i < 70000; ++i) many.push_back({.name = std::to_string(i), .text = ""});
  CHECK(Archive(zip_bytes(many, {.wide = true})).open().members().size() == 70000);
}

TEST_CASE("64-bit sizes and offsets are read if the directory has them") {
  const Archive all(
      zip_bytes({{.name = "a", .text = "A"},
                 {.name = "b", .text = "BB", .wide = true},
                 {.name = "c", .text = std::string(99, 'c'), .method = 8, .wide = true}},
                {.wide = true}));
  const ZipArchive archive = all.open();
  CHECK(read(archive, "a") == "A");
  CHECK(read(archive, "b") == "BB");
  CHECK(read(archive, "c") == std::string(99, 'c'));
  CHECK_THAT(error_of({{.name = "b", .text = "BB", .wide = true, .extra_bytes = 15}}),
             Contains("valid member sizes. Received: \"b\" with invalid ones."));
  // The written header and directory for 4 GiB and more.
  ZipMember large{.name = "w", .offset = uint64_t{5} << 32, .bytes = (uint64_t{1} << 32) + 9};
  CHECK(zip_header(large).size() == 30 + 1 + 20);
  const std::string directory = zip_directory({large}, large.offset + large.bytes);
  CHECK(directory.size() == 46 + 1 + 28 + 56 + 20 + 22);
  const test::TempFolder folder;
  test::write_file(folder / "large", "");
  const FileDescriptor sparse = open_descriptor(folder / "large", O_RDWR);
  const auto write = [&](uint64_t at, const std::string& bytes) {
    return ::pwrite(sparse.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)) ==
           static_cast<ssize_t>(bytes.size());
  };
  REQUIRE(write(large.offset - zip_header(large).size(), zip_header(large)));
  REQUIRE(write(large.offset + large.bytes, directory));
  const ZipArchive read_back(folder / "large");
  REQUIRE(read_back.members().size() == 1);
  CHECK(read_back.members()[0].offset == large.offset);
  CHECK(read_back.members()[0].bytes == large.bytes);
  CHECK(read_back.members()[0].stored == large.bytes);
}

TEST_CASE("written zip archives are read back") {
  std::string bytes;
  std::vector<ZipMember> members;
  for (const auto& [name, text] : {std::pair<std::string, std::string>{"a/caf\xc3\xa9", "one"},
                                   {"b", ""},
                                   {"c", std::string(70000, 'x')}}) {
    ZipMember member{.name = name,
                     .stored = text.size(),
                     .bytes = text.size(),
                     .checksum = test::crc(text),
                     .wide = name == "c"};
    member.offset = bytes.size() + zip_header(member).size();
    bytes += zip_header(member) + text;
    members.push_back(member);
  }
  const Archive file(bytes + zip_directory(members, bytes.size()));
  const ZipArchive archive = file.open();
  REQUIRE(archive.members().size() == 3);
  CHECK(read(archive, "a/caf\xc3\xa9") == "one");
  CHECK(read(archive, "b").empty());
  CHECK(read(archive, "c") == std::string(70000, 'x'));
  for (size_t i = 0; i < 3; ++i) CHECK(archive.members()[i].offset == members[i].offset);
}

TEST_CASE("names that point outside the folder and invalid names are refused") {
  for (const std::string& name :
       {std::string("../x"), std::string("a/../../x"), std::string("a/.."), std::string(".."),
        std::string("/etc/passwd"), std::string("a\\..\\x"), std::string("C:x"), std::string("./x"),
        std::string("a//b"), std::string(""), std::string("/"), std::string("a\nb"),
        std::string("a\0b", 3), std::string("\x1b[2J"), std::string("../"),
        std::string(1025, 'n')}) {
    CAPTURE(name);
    const std::string error = error_of({{.name = "a", .text = "A"}, {.name = name, .text = "x"}});
    CHECK_THAT(error, Contains("case.keras] names inside the archive's folder. Received: \""));
  }
  CHECK(error_of({{.name = "a..b/.c", .text = "x"}}) == "no error");
}

TEST_CASE("members that are no regular files are refused by name") {
  const auto error = [](ZipEntry entry) {
    return error_of({{.name = "a", .text = "A"}, std::move(entry)});
  };
  CHECK_THAT(error({.name = "a", .text = "B"}), Contains("unique names. Received: \"a\" twice."));
  CHECK_THAT(error({.name = "a/", .text = ""}), Contains("\"a/\" twice."));
  CHECK_THAT(error({.name = "l", .text = "/etc/passwd", .mode = S_IFLNK | 0777}),
             Contains("\"l\", a link or device."));
  CHECK_THAT(error({.name = "p", .text = "", .mode = S_IFIFO | 0600}),
             Contains("\"p\", a link or device."));
  CHECK_THAT(error({.name = "f", .text = "", .mode = S_IFDIR | 0700}),
             Contains("\"f\", a link or device."));
  CHECK(error({.name = "f/", .text = "", .mode = S_IFDIR | 0700}) == "no error");
  CHECK_THAT(error({.name = "e", .text = "x", .flags = 1}), Contains("\"e\", encrypted."));
  CHECK_THAT(error({.name = "s", .text = "x", .flags = 0x41}), Contains("\"s\", encrypted."));
  for (const uint16_t method : {1, 6, 9, 12, 14, 93, 95, 99}) {
    CHECK_THAT(error({.name = "m", .text = "x", .method = method}),
               Contains("\"m\", by method " + std::to_string(method) + "."));
  }
}

TEST_CASE("false sizes, offsets and checksums are refused") {
  const auto changed = [](const std::function<void(ZipEntry&)>& change, uint16_t method = 0) {
    std::vector<ZipEntry> entries{{.name = "a", .text = std::string(300, 'a'), .method = method},
                                  {.name = "b", .text = "BBBB"}};
    change(entries[0]);
    return error_of(entries);
  };
  CHECK(changed([](ZipEntry&) {}) == "no error");
  CHECK_THAT(changed([](ZipEntry& a) { a.says_bytes = 299; }), Contains("with invalid ones"));
  CHECK_THAT(changed([](ZipEntry& a) { a.says_bytes = 299; }, 8),
             Contains("299 bytes of \"a\". Received: more."));
  CHECK_THAT(changed([](ZipEntry& a) { a.says_bytes = 301; }, 8),
             Contains("301 bytes of \"a\". Received: 300."));
  CHECK_THAT(changed([](ZipEntry& a) { a.says_stored = a.says_bytes = 301; }),
             Contains("\"a\", which overlaps another"));
  CHECK_THAT(changed([](ZipEntry& a) { a.says_stored = 3; }, 8), Contains("300 bytes of \"a\"."));
  CHECK_THAT(changed([](ZipEntry& a) { a.says_stored = a.says_bytes = 5000; }),
             Contains("an archive that is whole"));
  CHECK_THAT(changed([](ZipEntry& a) { a.says_checksum = 7; }),
             Contains("\"a\" as it was written. Received: another checksum."));
  CHECK_THAT(changed([](ZipEntry& a) { a.says_checksum = 7; }, 8), Contains("another checksum"));
  CHECK_THAT(changed([](ZipEntry& a) { a.says_offset = 1; }),
             Contains("members at the directory's offsets. Received: \"a\"."));
  CHECK_THAT(changed([](ZipEntry& a) { a.says_offset = 1 << 30; }), Contains("that is whole"));
  CHECK_THAT(changed([](ZipEntry& a) { a.local_name = "c"; }), Contains("the directory's offsets"));
  CHECK_THAT(
      error_of({{.name = "a", .text = "no deflate", .method = 8, .raw = true, .says_bytes = 10}}),
      Contains("\"a\" compressed by deflate. Received: other"));
}

TEST_CASE("overlapping members are refused") {
  // A complete member inside another one's bytes, as in zip bombs of overlapping files.
  const std::string inner = zip_bytes({{.name = "b", .text = "inside"}});
  const std::string local = inner.substr(0, 30 + 1 + 6);
  CHECK_THAT(
      error_of({{.name = "a", .text = local}, {.name = "b", .text = "inside", .says_offset = 31}}),
      Contains("do not overlap. Received: \"a\", which overlaps another."));
  // A member inside another one's header.
  CHECK_THAT(error_of({{.name = "a", .text = "", .local_extra = local},
                       {.name = "b", .text = "inside", .says_offset = 31}}),
             Contains("\"a\", which overlaps another"));
  // A member that reaches into the directory.
  std::string bytes = zip_bytes({{.name = "a", .text = "A", .says_bytes = 60, .says_stored = 60}});
  CHECK_THAT(Archive(bytes).error(), Contains("\"a\", which overlaps another"));
}

TEST_CASE("an inconsistent directory is refused") {
  const auto error = [](const test::ZipEnd& end) { return Archive(zip_bytes(model, end)).error(); };
  CHECK_THAT(error({.count = 3}), Contains("3 members. Received: a directory of more."));
  CHECK_THAT(error({.count = 5}), Contains("5 members. Received: a directory of 4."));
  CHECK_THAT(error({.count = 0}), Contains("a directory of more"));
  CHECK_THAT(error({.disk = 1}),
             Contains("an archive in one file. Received: a multi-part archive."));
  CHECK_THAT(error({.offset = 3}), Contains("4 members. Received: a directory of 0."));
  CHECK_THAT(error({.offset = 100000}), Contains("a valid central directory"));
  CHECK_THAT(error({.bytes = 100000}), Contains("a valid central directory"));
  CHECK_THAT(error({.wide = true, .count = uint64_t{1} << 40}), Contains("1099511627776 members"));
  CHECK_THAT(error({.wide = true, .bytes = ~uint64_t{0}}), Contains("a valid central directory"));
  CHECK_THAT(error({.wide = true, .offset = ~uint64_t{0}}), Contains("a valid central directory"));
  CHECK_THAT(error({.wide = true, .wide_at = 7}), Contains("the archive's end"));
  CHECK_THAT(error({.wide = true, .wide_at = ~uint64_t{0}}), Contains("that is whole"));
}

TEST_CASE("a member with an excessive compression ratio is refused before it is inflated") {
  const uint64_t bytes = (uint64_t{4} << 30) + 1;
  const Archive file(zip_bytes({{.name = "w",
                                 .text = std::string(1000, '\0'),
                                 .method = 8,
                                 .wide = true,
                                 .says_bytes = bytes}}));
  const ZipArchive archive = file.open();
  CHECK_THAT(test::error_line([&] { archive.unpack(archive.members()[0]); }),
             Contains("at most 100 times the ") && Contains("4294967297 bytes of \"w\""));
  // Small members may have any ratio, but not more bytes than declared.
  const Archive small(zip_bytes({{.name = "w", .text = std::string(50000, '\0'), .method = 8}}));
  CHECK(text_of(*small.open().unpack(small.open().members()[0])).size() == 50000);
}

TEST_CASE("a truncated zip archive is refused at every length; a changed one is read or refused") {
  const std::string bytes = zip_bytes(model);
  const Archive zip_file(bytes);
  REQUIRE(zip_file.error() == "no error");
  for (size_t length = 0; length < bytes.size(); ++length) {
    test::write_file(zip_file.path(), bytes.substr(0, length));
    if (zip_file.error() != "no error") continue;
    FAIL_CHECK("length " << length);
  }
  size_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      test::write_file(zip_file.path(), changed);
      refused += zip_file.error() != "no error";
    }
  }
  // Any date, version and attribute is valid.
  CHECK(refused > bytes.size() * 4);
  CHECK(refused < bytes.size() * 8);
}

TEST_CASE("a path that is no zip archive is refused at once") {
  const test::TempFolder folder;
  const auto error = [](const std::string& path) {
    return test::error_line([&] { ZipArchive archive(path); });
  };
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(error(folder / "pipe"),
             Contains("pipe] a zip archive. Received: not a regular file."));
  CHECK_THAT(error("/dev/zero"), Contains("not a regular file"));
  CHECK_THAT(error(folder / "none"), Contains("No such file or directory"));
  test::write_file(folder / "text", std::string(100000, 't'));
  CHECK_THAT(error(folder / "text"), Contains("a zip archive. Received: a file without the end"));
}

}  // namespace zip_archive_test
