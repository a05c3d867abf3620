#include <tessera/datasets/files/npy.hpp>

#include <sys/stat.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"

namespace npy_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// Returns an .npy file with this header, by default of version 1.
std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  const size_t size = dictionary.size() + 1;
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes += static_cast<char>(size >> (8 * i));
  return bytes + dictionary + "\n" + data;
}

std::string header(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }   ";
}

class NpyFile {
 public:
  std::string path() const { return folder_ / "case.npy"; }
  NpyArray read(const std::string& bytes, uint64_t most = 1 << 20) const {
    test::write_file(path(), bytes);
    return read_npy(path(), most);
  }
  std::string error(const std::string& bytes, uint64_t most = 1 << 20) const {
    return test::error_line([&] { read(bytes, most); });
  }

 private:
  test::TempFolder folder_;
};

std::string text_of(const NpyArray& array) {
  return {reinterpret_cast<const char*>(array.data.data()), array.data.size()};
}

}  // namespace

TEST_CASE("arrays of every tensor dtype are read, in each version of the format") {
  const NpyFile file;
  const struct {
    const char* descr;
    const char* dtype;
    size_t bytes;
  } kinds[] = {{"<f4", "F32", 4}, {"<f8", "F64", 8},    {"<f2", "F16", 2},  {"<i8", "I64", 8},
               {"<i4", "I32", 4}, {"|u1", "U8", 1},     {"|b1", "BOOL", 1}, {"<i2", "I16", 2},
               {"|i1", "I8", 1},  {"<u2", "U16", 2},    {"<u4", "U32", 4},  {"<u8", "U64", 8},
               {"<c8", "C64", 8}, {"<c16", "C128", 16}, {"=f4", "F32", 4}};
  for (const auto& kind : kinds) {
    for (int version = 1; version <= 3; ++version) {
      CAPTURE(kind.descr, version);
      std::string data;
      for (size_t i = 0; i < 6 * kind.bytes; ++i) data += static_cast<char>(i % 2);
      const NpyArray array = file.read(npy(header(kind.descr, "(2, 3)"), data, version));
      CHECK(array.dtype == kind.dtype);
      CHECK(array.shape == Shape{2, 3});
      CHECK(text_of(array) == data);
    }
  }
}

TEST_CASE("big-endian numbers are read as little-endian ones, in column-major arrays too") {
  const NpyFile file;
  CHECK(text_of(file.read(npy(header(">i2", "(3,)"), "badcfe"))) == "abcdef");
  CHECK(text_of(file.read(npy(header(">f8", "(1,)"), "hgfedcba"))) == "abcdefgh");
  // Each half of a complex number is swapped by itself.
  CHECK(text_of(file.read(npy(header(">c8", "(1,)"), "dcbahgfe"))) == "abcdefgh");
  const NpyArray array =
      file.read(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", "adbecf"));
  CHECK(array.fortran_order);
  CHECK(array.shape == Shape{2, 3});
  CHECK(text_of(array) == "adbecf");
}

TEST_CASE("arrays of texts are read in UTF-8, without the zeros that fill them up") {
  const NpyFile file;
  using Texts = std::vector<std::string>;
  CHECK(*file.read(npy(header("|S3", "(3,)"), std::string("ab\0x\0y\0\0\0", 9))).texts ==
        Texts{"ab", std::string("x\0y", 3), ""});
  const std::string euro("\xAC\x20\0\0q\0\0\0", 8), swapped("\0\0\x20\xAC\0\0\0q", 8);
  CHECK(*file.read(npy(header("<U2", "(1,)"), euro)).texts == Texts{"\xE2\x82\xACq"});
  CHECK(*file.read(npy(header(">U2", "(1,)"), swapped)).texts == Texts{"\xE2\x82\xACq"});
  CHECK_THAT(file.error(npy(header("<U1", "(1,)"), std::string("\0\xD8\0\0", 4))),
             Contains("case.npy] characters of Unicode. Received: number 55296."));
  CHECK(file.read(npy(header("<U2", "(0,)"), "")).texts->empty());
}

TEST_CASE("the header's keys are read in any order and spacing, as Python reads them") {
  const NpyFile file;
  for (const char* dictionary :
       {"{'shape': (2, 3), 'fortran_order': False, 'descr': '|u1'}",
        "{\"descr\":\"|u1\",\"fortran_order\":False,\"shape\":(2,3)}  ",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2L, 3L), }",
        "  { 'descr' : 'u1' ,\n 'fortran_order' : False , 'shape' : ( 2 , 3 , ) , } "}) {
    CAPTURE(dictionary);
    CHECK(file.read(npy(dictionary, "abcdef")).shape == Shape{2, 3});
  }
}

TEST_CASE("arrays of any rank are read, empty ones too") {
  const NpyFile file;
  CHECK(file.read(npy(header("|u1", "()"), "x")).shape.empty());
  CHECK(file.read(npy(header("|u1", "(3,)"), "xyz")).shape == Shape{3});
  CHECK(file.read(npy(header("|u1", "(1, 1, 2, 1, 1)"), "xy")).shape == Shape{1, 1, 2, 1, 1});
  CHECK(file.read(npy(header("<f8", "(0, 5)"), "")).shape == Shape{0, 5});
}

TEST_CASE("written arrays equal numpy's files and are read back") {
  const test::TempFolder folder;
  const std::string path = folder / "a.npy";
  const std::string data = "12345678abcdefgh";
  write_npy(path, "F32", {2, 2}, std::as_bytes(std::span(data)));
  // The bytes that numpy.save() writes for the same array.
  std::string expected("\x93NUMPY\1\0v\0", 10);
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
  expected.resize(127, ' ');
  CHECK(test::read_file(path) == expected + "\n" + data);
  CHECK(text_of(read_npy(path)) == data);
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}, Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
    const std::span<const char> one(data.data(), shape == Shape{0, 3} ? 0 : 8);
    write_npy(path, "I64", shape, std::as_bytes(one));
    const NpyArray array = read_npy(path);
    CHECK(array.shape == shape);
    CHECK(array.dtype == "I64");
    CHECK(text_of(array) == std::string(one.begin(), one.end()));
    CHECK((test::read_file(path).size() - one.size()) % 64 == 0);
  }
  CHECK_THAT(test::error_line([&] { write_npy(path, "BF16", {}, {}); }),
             Contains("a dtype that NumPy has. Received: BF16."));
  CHECK_THAT(test::error_line([&] { write_npy(folder / "none/a.npy", "U8", {}, {}); }),
             Contains("none/a.npy]"));
}

TEST_CASE("arrays that are not numeric, and invalid headers, are refused") {
  const NpyFile file;
  const std::string data(400, '\1');
  const auto error = [&](const std::string& dictionary) {
    return file.error(npy(dictionary, data));
  };
  for (const char* descr : {"|O", "<f16", "<M8[s]", "<U0", "|S", "|S-1", "<i3", "|V2", ""}) {
    CAPTURE(descr);
    CHECK_THAT(error(header(descr, "(2,)")),
               Contains("case.npy] numbers of the kinds") && Contains("To fix: save x.astype()"));
  }
  CHECK_THAT(error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }"),
             Contains("Received: a structured array. To fix: save each of its fields."));
  for (const char* dictionary :
       {"{'descr': '|u1', 'fortran_order': False, 'shape': (400,), } x",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (400,), 'a': 'b'}",
        "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (400,)}",
        "{'descr': '|u1', 'shape': (400,)}", "{'descr': '|u1' 'fortran_order': False}",
        "{'descr': '|u1', 'fortran_order': 0, 'shape': (400,)}", "{'descr", "{", ""}) {
    CAPTURE(dictionary);
    CHECK_THAT(error(dictionary), Contains("case.npy, byte 8] the header of an array as"));
  }
  CHECK_THAT(error("__import__('os').system('x')"), Contains("as numpy.save writes it"));
  for (const char* shape : {"(-1,)", "(2", "2", "(2.0,)", "(2,,)", "(0x2,)", "(2 3)", "None"}) {
    CAPTURE(shape);
    CHECK_THAT(error(header("<f4", shape)), Contains("byte 8]"));
  }
  CHECK_THAT(error(header("<f4", "(99999999999999999999,)")), Contains("a shape of numbers"));
  CHECK_THAT(error(header("<f4", "(281474976710657,)")), Contains("extents of at most 2^48"));
  CHECK_THAT(error(header("<f8", "(281474976710656, 281474976710656)")),
             Contains("a shorter file"));
  CHECK_THAT(error(header("<f8", "(1000000000,)")), Contains("the numbers of shape (1000000000,)"));
  CHECK_THAT(file.error(npy(header("|u1", "(400,)"), data), 399), Contains("a shorter file"));
  CHECK_THAT(file.error("PK\3\4" + data),
             Contains("byte 0] an array that numpy.save wrote begins"));
  CHECK_THAT(file.error(npy(header("|u1", "(400,)"), data, 4)), Contains("byte 0]"));
  CHECK_THAT(file.error(npy(std::string(70000, ' '), data, 2)),
             Contains("byte 8] a header of at most 65536 bytes. Received: 70001."));
  const std::string good = npy(header("|u1", "(400,)"), data);
  CHECK_THAT(file.error(good + "x"), Contains("Received: more bytes."));
}

TEST_CASE("a truncated array is refused at every length; a damaged one is read or refused") {
  const NpyFile file;
  const std::string bytes = npy(header("<i4", "(2, 5)"), std::string(40, 'd'));
  CHECK(file.error(bytes) == "no error");
  for (size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    CHECK_THAT(file.error(bytes.substr(0, length)), Contains("case.npy, byte "));
  }
  size_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      refused += file.error(changed) != "no error";
    }
  }
  // Any data bytes are valid; all other bytes are not.
  CHECK(refused > (bytes.size() - 60) * 7);
  CHECK(refused < bytes.size() * 8 - 40 * 8);
}

TEST_CASE("a path that is no regular .npy file is refused at once") {
  const test::TempFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(test::error_line([&] { read_npy(folder / "pipe"); }), Contains("pipe]"));
  CHECK_THAT(test::error_line([&] { read_npy(folder / "none"); }), Contains("No such file"));
}

}  // namespace npy_test
