#include <archive.h>
#include <dlfcn.h>

#include <tessera/framework/base/error.hpp>

#include "tests/datasets/files/csv_case.hpp"
#include "tests/support/packed_writer/packed_writer.hpp"
#include "tests/support/tar_file.hpp"

namespace csv_text_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::Csv;

namespace {

using Texts = std::vector<std::string>;

/// Returns the bytes of UTF-16.
std::string utf16(const std::u16string& text, bool big_endian) {
  std::string bytes;
  for (const char16_t unit : text) {
    const char high = static_cast<char>(unit >> 8), low = static_cast<char>(unit & 0xFF);
    bytes += big_endian ? high : low;
    bytes += big_endian ? low : high;
  }
  return bytes;
}

/// Returns a compressed file or an archive of texts.
std::string packed(int filter, int format, const Texts& texts) {
  void* const library = ::dlopen(PACKED_WRITER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library);
  const auto write = reinterpret_cast<decltype(&test::pack_texts)>(::dlsym(library, "pack_texts"));
  REQUIRE(write);
  std::string bytes;
  write(filter, format, texts, bytes);
  REQUIRE_FALSE(bytes.empty());
  return bytes;
}

}  // namespace

TEST_CASE("a file that is not UTF-8 is an error that shows the byte and names the encodings") {
  const std::string latin1 = "a,b\n1,x\n2,caf\xE9\n";
  for (const uint64_t block : {1, 2, 3, 7, 1 << 20}) {
    CAPTURE(block);
    CHECK_THAT(Csv(latin1, {.block_bytes = block}).error,
               Contains("case.csv, line 3] text in UTF-8. Received: \"") && Contains("\\xe9") &&
                   Contains("To fix: pass encoding = \"cp1252\""));
  }
  CHECK_THAT(Csv(latin1).error, Contains("Received: \"2,caf\\xe9\"."));
  CHECK_THAT(Csv("a\n\xC3\n1\n").error, Contains("line 2] text in UTF-8"));
  CHECK_THAT(Csv("a\n\xED\xA0\x80\n").error, Contains("line 2] text in UTF-8"));
  CHECK_THAT(Csv("a\nx\xF0\x9F\x98").error, Contains("line 2] text in UTF-8"));
  CHECK_THAT(Csv("a\n", {.encoding = "latin1"}).error,
             Contains("encoding is one of") && Contains("To fix: write \"latin-1\""));
  // Characters that blocks cut in two are valid.
  const std::string valid = "a\n\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\n";
  for (const uint64_t block : {1, 2, 3, 5, 1 << 20}) {
    CHECK(Csv(valid, {.block_bytes = block}).texts(0)[0] == valid.substr(2, 9));
  }
}

TEST_CASE("files of other encodings are decoded to UTF-8") {
  Csv latin1(
      "gr\xF6\xDF"
      "e\n\x80\n",
      {.encoding = "latin-1"});
  CHECK(latin1.kinds() ==
        "gr\xC3\xB6\xC3\x9F"
        "e text");
  CHECK(latin1.texts(0) == Texts{"\xC2\x80"});
  Csv windows("a\n\x80 \x93q\x94 \xE9\n", {.encoding = "cp1252", .block_bytes = 2});
  CHECK(windows.texts(0) == Texts{"\xE2\x82\xAC \xE2\x80\x9Cq\xE2\x80\x9D \xC3\xA9"});
  CHECK_THAT(Csv("a\n\x81\n", {.encoding = "cp1252"}).error,
             Contains("case.csv] text in cp1252. Received: \"\\x81\""));
  const std::u16string text = u"a,b\r1,\u00E9\u20AC\U0001F600\r";
  for (const bool big_endian : {false, true}) {
    for (const uint64_t block : {1, 5, 1 << 20}) {
      CAPTURE(big_endian, block);
      Csv wide(utf16(u"\uFEFF" + text, big_endian), {.encoding = "utf-16", .block_bytes = block});
      CHECK(wide.kinds() == "a int64, b text");
      CHECK(wide.texts(1) == Texts{"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"});
    }
  }
  CHECK(Csv(utf16(text, false), {.encoding = "utf-16"}).kinds() == "a int64, b text");
  CHECK_THAT(Csv(utf16(u"\uFEFFa\n", false)).error, Contains("pass encoding = \"utf-16\""));
  CHECK_THAT(Csv(utf16(u"a\n1\n", false)).error, Contains("or pass encoding = \"utf-16\""));
  CHECK_THAT(Csv(utf16(u"a\n\xD83D", false), {.encoding = "utf-16"}).error, Contains("half a"));
  CHECK_THAT(Csv(utf16(u"a\n\xDE00x", false), {.encoding = "utf-16"}).error, Contains("half a"));
  CHECK_THAT(Csv("a\0\n", {.encoding = "utf-16"}).error, Contains("half a character at the end"));
}

TEST_CASE("compressed files are recognized by their first bytes") {
  const std::string text = "a,b\n1,\xE9\n2,y\n";
  const struct {
    const char* name;
    std::string bytes;
  } files[] = {{"gzip", test::gzip_bytes(text)},
               {"bzip2", packed(ARCHIVE_FILTER_BZIP2, ARCHIVE_FORMAT_RAW, {text})},
               {"xz", packed(ARCHIVE_FILTER_XZ, ARCHIVE_FORMAT_RAW, {text})},
               {"Zstandard", packed(ARCHIVE_FILTER_ZSTD, ARCHIVE_FORMAT_RAW, {text})},
               {"zip", packed(ARCHIVE_FILTER_NONE, ARCHIVE_FORMAT_ZIP, {text})}};
  for (const auto& file : files) {
    CAPTURE(file.name);
    Csv csv(file.bytes, {.encoding = "latin-1"});
    CHECK(csv.kinds() == "a int64, b text");
    CHECK(csv.texts(1) == Texts{"\xC3\xA9", "y"});
    CHECK_THAT(Csv(file.bytes).error, Contains("case.csv, line 2] text in UTF-8"));
    const Csv cut(file.bytes.substr(0, file.bytes.size() / 2), {.encoding = "latin-1"});
    CHECK_THAT(cut.error, Contains("case.csv"));
  }
  CHECK_THAT(
      Csv(packed(ARCHIVE_FILTER_NONE, ARCHIVE_FORMAT_ZIP, {text, text}), {.encoding = "latin-1"})
          .error,
      Contains("case.csv] a zip archive of one file. Received: one of several."));
}

}  // namespace csv_text_test
