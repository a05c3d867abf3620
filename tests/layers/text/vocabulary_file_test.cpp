#include <tessera/layers/text/internal/vocabulary_file.hpp>

#include <cfloat>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace vocabulary_file_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

using Files = std::map<std::string, std::string>;

void check_round_trip(const VocabularyFiles& vocabulary) {
  const VocabularyFiles again = read_vocabulary_files(vocabulary_files(vocabulary));
  CHECK(again.tokens == vocabulary.tokens);
  CHECK(again.idf_weights == vocabulary.idf_weights);
}

}  // namespace

TEST_CASE("a vocabulary is written as Keras writes it") {
  CHECK(vocabulary_files({{"", "[UNK]", "the", "caf\xc3\xa9"}, {}}) ==
        Files{{"vocabulary.txt", "\n[UNK]\nthe\ncaf\xc3\xa9"}});
  CHECK(vocabulary_files({{"[UNK]", "a"}, {0.1f, 2}}) ==
        Files{{"vocabulary.txt", "[UNK]\na"}, {"idf_weights.txt", "0.1\n2"}});
  CHECK(vocabulary_files({{"a\n", "b"}, {}}) ==
        Files{{"vocabulary.txt", "a\n\nb"}, {"vocabulary_lengths.txt", "2\n1"}});
}

TEST_CASE("a vocabulary round-trips exactly") {
  check_round_trip({{"a"}, {}});
  check_round_trip({{"", "[UNK]", "a b", "\r", "\xff\xfe", std::string("x\0y", 3), ""}, {}});
  check_round_trip({{"\n", "\n\n", "", "a\n", "\nb", "c"}, {}});
  check_round_trip({{"a", "b", "c", "d"}, {1.0f / 3, FLT_MIN, FLT_MAX, -0.1f}});
}

TEST_CASE("malicious vocabulary files are refused by name") {
  struct Hostile {
    Files files;
    std::string where, says;
  };
  const std::string tokens = "vocabulary.txt", lengths = "vocabulary_lengths.txt";
  const std::string weights = "idf_weights.txt";
  const std::vector<Hostile> all = {
      {{}, tokens, "none"},
      {{{weights, "1"}}, tokens, "none"},
      {{{tokens, "a"}, {"../vocabulary.txt", "b"}}, "../vocabulary.txt", "another"},
      {{{tokens, "a"}, {"x\ny", "b"}}, "x\\x0ay", "another"},
      {{{tokens, "a\nb"}, {weights, "1"}}, weights, "2 tokens"},
      {{{tokens, "a\nb"}, {weights, "1\n2\n"}}, weights, "\"\""},
      {{{tokens, "a"}, {weights, "1\n2"}}, weights, "1 tokens"},
      {{{tokens, "a"}, {weights, "nan"}}, weights, "\"nan\""},
      {{{tokens, "a"}, {weights, "inf"}}, weights, "\"inf\""},
      {{{tokens, "a"}, {weights, "1e99"}}, weights, "1e99"},
      {{{tokens, "a"}, {weights, " 1"}}, weights, "\" 1\""},
      {{{tokens, "a"}, {weights, "0x1"}}, weights, "0x1"},
      {{{tokens, "ab"}, {lengths, "1"}}, tokens, "1 bytes"},
      {{{tokens, "ab"}, {lengths, "1\n1"}}, lengths, "token 1"},
      {{{tokens, "ab"}, {lengths, "2\n0"}}, lengths, "token 1"},
      {{{tokens, "ab"}, {lengths, "3"}}, lengths, "3 bytes"},
      {{{tokens, "ab"}, {lengths, "18446744073709551615"}}, lengths, "token 0"},
      {{{tokens, "ab"}, {lengths, "18446744073709551616"}}, lengths, "one number"},
      {{{tokens, "ab"}, {lengths, "-1"}}, lengths, "one number"},
      {{{tokens, "ab"}, {lengths, ""}}, lengths, "one number"},
  };
  for (const Hostile& hostile : all) {
    CAPTURE(hostile.where, hostile.says);
    CHECK_THROWS_WITH(
        read_vocabulary_files(hostile.files),
        Catch::Matchers::StartsWith("[" + hostile.where + "]") && Contains(hostile.says));
  }
}

}  // namespace vocabulary_file_test
