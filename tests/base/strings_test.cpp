#include <tessera/framework/base/internal/strings.hpp>

#include <vector>

#include "tests/support/catch.hpp"

namespace strings_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("nearest finds the candidate within a few typing mistakes") {
  const std::vector<std::string> names{"batch", "model", "feature", "x"};
  CHECK(nearest("modle", names) == "model");
  CHECK(nearest("Batch", names) == "batch");
  CHECK(nearest("featurexx", names) == "feature");
  CHECK(nearest("featurexx", names, 1) == "");
  CHECK(nearest("features", names) == "feature");
  CHECK(nearest("bach", names) == "batch");
  CHECK(nearest("zzzzz", names).empty());
  CHECK(nearest("q", names).empty());
  CHECK(nearest("", names).empty());
  CHECK(nearest(std::string(1000000, 'm'), names).empty());
  CHECK(nearest("model", {}).empty());
}

TEST_CASE("a suggestion names the nearest candidate or lists all") {
  const std::vector<std::string> names{"batch", "model"};
  CHECK(suggestion("modle", names) == "write \"model\"");
  CHECK(suggestion("spatial", names) == "use one of \"batch\", \"model\"");
  CHECK(suggestion("spatial", {}) == "remove it");
}

TEST_CASE("texts from files are shown on one line") {
  CHECK(in_quotes("a/b") == "\"a/b\"");
  CHECK(in_quotes("caf\xc3\xa9") == "\"caf\xc3\xa9\"");
  CHECK(in_quotes(std::string_view("a\n\0\xff\x1b", 5)) == "\"a\\x0a\\x00\\xff\\x1b\"");
  CHECK(in_quotes("abcdef", 3) == "\"abc...\"");
  CHECK(in_quotes("ab\xc3\xa9", 3) == "\"ab\xc3\xa9\"");
  const std::vector<std::string> three{"a", "b", "c"};
  CHECK(quoted_list(three, 2) == "\"a\", \"b\", ...");
  CHECK(quoted_list(three, 3) == "\"a\", \"b\", \"c\"");
}

TEST_CASE("UTF-8 characters are measured strictly") {
  CHECK(utf8_length("a") == 1);
  CHECK(utf8_length("\xc3\xa9") == 2);
  CHECK(utf8_length("\xe2\x82\xac") == 3);
  CHECK(utf8_length("\xf0\x9f\x98\x80") == 4);
  for (const char* bad :
       {"", "\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3", "\xe2\x82", "\xc3\x28"}) {
    CHECK(utf8_length(bad) == 0);
  }
}

}  // namespace strings_test
