#include <tessera/framework/io/format/checkpoint_index.hpp>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace checkpoint_index_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

const std::string checksum(32, 'a');

/// Returns an index of one tensor with these texts as shape, end of its piece, and state.
std::string index_text(const std::string& shape, const std::string& end, const std::string& state) {
  return R"({"format": "tessera checkpoint", "version": 1, "shards": [{"bytes": 100, )"
         R"("header_checksum": ")" +
         checksum +
         R"("}], "tensors": [{"name": "w", "dtype": "F32", )"
         R"("shape": )" +
         shape + R"(, "pieces": [{"shard": 0, "begin": [0], "end": )" + end +
         R"(, "checksums": [")" + checksum + R"("]}]}], "state": )" + state + "}";
}

/// Returns the text of the FileError of an index; "" if it is read.
std::string error_of(const std::string& text) {
  try {
    parse_checkpoint_index(text, "a/index.json");
  } catch (const FileError& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "";
}

std::string repeat(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

}  // namespace

TEST_CASE("an index reads back as it was written") {
  const std::string text = index_text("[4]", "[4]", R"({"step": 3})");
  const CheckpointIndex index = parse_checkpoint_index(text, "index.json");
  REQUIRE(index.tensors.size() == 1);
  CHECK(index.tensors[0].tensor.shape == Shape{4});
  CHECK(index.state == Json{{"step", 3}});
  const std::string written = checkpoint_index_text(index);
  CHECK(checkpoint_index_text(parse_checkpoint_index(written, "index.json")) == written);
}

TEST_CASE("hostile JSON in an index is refused with the file's name") {
  for (const std::string number : {"-1", "1.5", "1e2", "18446744073709551616", "1e400", "null",
                                   "\"4\"", "9223372036854775807", "true"}) {
    CAPTURE(number);
    CHECK_THAT(error_of(index_text("[" + number + "]", "[4]", "null")),
               StartsWith("[a/index.json"));
    CHECK_THAT(error_of(index_text("[4]", "[" + number + "]", "null")),
               StartsWith("[a/index.json"));
  }
  CHECK_THAT(error_of(index_text("[4]", "[4]", repeat("[", 1000000))), Contains("64 deep"));
  CHECK_THAT(error_of(index_text("[4]", "[4]", R"({"a": 1, "a": 2})")), Contains("\"a\""));
  CHECK_THAT(error_of(index_text("[4]", "[4]", "1e400")), Contains("1e400"));
  CHECK_THAT(error_of(index_text("[4]", "[4]", std::string("\"a\0b\"", 5))), Contains("NUL"));
  CHECK_THAT(error_of(index_text("[4]", "[4]", "\"\xff\"")), Contains("UTF-8"));
  CHECK_THAT(error_of(index_text("[4]", "[4]", "null") + "x"), StartsWith("[a/index.json"));
  CHECK_THAT(error_of(index_text("[4294967296, 4294967296]", "[4]", "null")),
             Contains("tensor \"w\"") && Contains("2^61"));
  CHECK_FALSE(error_of("").empty());
}

}  // namespace checkpoint_index_test
