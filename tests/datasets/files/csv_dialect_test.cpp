#include <cmath>

#include <tessera/framework/base/error.hpp>

#include "tests/datasets/files/csv_case.hpp"
#include "tests/support/warnings.hpp"

namespace csv_dialect_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::Csv;

namespace {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;
using Texts = std::vector<std::string>;

/// Returns a text with other line ends.
std::string with_line_ends(const std::string& text, const std::string& line_end) {
  std::string result;
  for (const char c : text) c == '\n' ? result += line_end : result += c;
  return result;
}

}  // namespace

TEST_CASE("rows end in a line feed, a carriage return, or both, in any block and thread") {
  const std::string text = "n,t\n1,\"a,\nb\"\n\n2,c\n3,\"d\"\n4,\n";
  for (const char* line_end : {"\n", "\r", "\r\n"}) {
    for (const uint64_t block : {1, 5, 8, 1 << 20}) {
      for (const int64_t threads : {1, 3}) {
        CAPTURE(line_end, block, threads);
        Csv csv(with_line_ends(text, line_end), {.block_bytes = block, .threads = threads});
        CHECK(csv.kinds() == "n int64, t text");
        CHECK(csv.ints(0) == Ints{1, 2, 3, 4});
        // A line end in quotes is kept as it is.
        CHECK(csv.texts(1) == Texts{with_line_ends("a,\nb", line_end), "c", "d", ""});
      }
    }
    CAPTURE(line_end);
    CHECK_THAT(Csv(with_line_ends("a,b\n1,2\n\n3\n", line_end)).error,
               Contains("case.csv, row 1, line 4] 2 fields"));
  }
  // As in pandas, also inside a file of other line ends.
  CHECK(Csv("a,b\r1,2\n3,4\r\n").ints(1) == Ints{2, 4});
  CHECK(Csv("a\n1\n \t \n2\n").ints(0) == Ints{1, 2});
}

TEST_CASE("integers that no int64 holds are text, unless other values are no integers") {
  Csv ids("id,x\n123456789012345678901234567890,1\n5,2\n");
  CHECK(ids.kinds() == "id text, x int64");
  CHECK(ids.texts(0) == Texts{"123456789012345678901234567890", "5"});
  Csv later("id\n5\n9223372036854775808\n\n", {.block_bytes = 4});
  CHECK(later.kinds() == "id text");
  CHECK(later.texts(0) == Texts{"5", "9223372036854775808"});
  CHECK(Csv("id,x\n,1\n-9223372036854775809,2\n").kinds() == "id text, x int64");
  CHECK(Csv("id\n9223372036854775808\n0.5\n").kinds() == "id float64");
  CHECK(Csv("id\n1e3\n9223372036854775808\n").kinds() == "id float64");
  CHECK(Csv("id\n9223372036854775808\n", {.kinds = {{"id", CsvKind::float64}}}).doubles(0) ==
        Doubles{9223372036854775808.0});
  CHECK_THAT(Csv("id\n9223372036854775808\n", {.kinds = {{"id", CsvKind::int64}}}).error,
             Contains("a value of kind int64. Received: \"9223372036854775808\""));
}

TEST_CASE("a warning says that missing values round large integers, and no other one is given") {
  const auto warnings = [](const std::string& text, const CsvReadOptions& options = {}) {
    const test::Warnings said;
    const Csv csv(text, options);
    CHECK(csv.error == "no error");
    return said.text();
  };
  const std::string rounded = "column \"id\"] integers above 2^53 are rounded";
  for (const char* text :
       {"id,x\n9007199254740993,1\n,2\n", "id,x\n,1\n9007199254740993,2\n",
        "id,x\n9223372036854775807,1\n1,3\n,2\n", "id,x\n1,1\n,2\n-9007199254740993,2\n"}) {
    CAPTURE(text);
    CHECK_THAT(warnings(text), Contains(rounded));
    CHECK_THAT(warnings(text, {.block_bytes = 3, .threads = 1}), Contains(rounded));
    CHECK(warnings(text, {.kinds = {{"id", CsvKind::float64}}}) == "");
  }
  CHECK(warnings("id\n9007199254740993\n1\n") == "");
  CHECK(warnings("id,x\n9007199254740992,1\n,2\n") == "");
  CHECK(warnings("id,x\n9007199254740993,1\n,2\n0.5,3\n") == "");
}

TEST_CASE("blanks and tabs around a number are no part of it") {
  Csv csv("a,b\n0\t\t,1\n \t2,\f3\n");
  CHECK(csv.kinds() == "a int64, b int64");
  CHECK(csv.ints(0) == Ints{0, 2});
  CHECK(csv.ints(1) == Ints{1, 3});
}

TEST_CASE("a blank as delimiter stands for runs of blanks and tabs") {
  Csv csv(" x  y z \n 0.5 \t 1  \"a b\"\n2\t3 c\n   \n", {.dialect = {.delimiter = ' '}});
  CHECK(csv.kinds() == "x float64, y int64, z text");
  CHECK(csv.doubles(0) == Doubles{0.5, 2});
  CHECK(csv.ints(1) == Ints{1, 3});
  CHECK(csv.texts(2) == Texts{"a b", "c"});
  CHECK(Csv(" 0.00632  18.00\n 0.02731   0.00\n", {.dialect = {.delimiter = ' '}, .header = false})
            .kinds() == "0 float64, 1 float64");
}

TEST_CASE("comments end with their line, and quotes in them mean nothing") {
  const std::string text =
      "# made by \"a logger\n#v2, \"b\na,b\n1,2 # it's \"two\n  # \"\n\"#3\",4#\n# end";
  for (const uint64_t block : {1, 9, 1 << 20}) {
    Csv csv(text, {.dialect = {.comment = '#'}, .block_bytes = block});
    CAPTURE(block);
    CHECK(csv.kinds() == "a text, b int64");
    CHECK(csv.texts(0) == Texts{"1", "#3"});
    CHECK(csv.ints(1) == Ints{2, 4});
  }
}

TEST_CASE("numbers have the decimal and thousands signs that are named") {
  Csv comma("a;b;c\n1,75;3.200,5;1.5\n,5;-1.234.567;2\n",
            {.dialect = {.delimiter = ';'}, .values = {.decimal = ',', .thousands = '.'}});
  CHECK(comma.kinds() == "a float64, b float64, c int64");
  CHECK(comma.doubles(0) == Doubles{1.75, 0.5});
  CHECK(comma.doubles(1) == Doubles{3200.5, -1234567});
  CHECK(comma.ints(2) == Ints{15, 2});
  Csv groups("a,b,c\n\"1,234,567\",\"1,2\",1.5\n890,\",5\",\"1.2,5\"\n",
             {.values = {.thousands = ','}});
  CHECK(groups.kinds() == "a int64, b text, c text");
  CHECK(groups.ints(0) == Ints{1234567, 890});
  // A point is then no decimal sign.
  CHECK(Csv("a\n1.5\n", {.dialect = {.delimiter = ';'}, .values = {.decimal = ','}}).kinds() ==
        "a text");
}

TEST_CASE("lines are skipped, blanks before fields, and short rows are filled up") {
  const std::string titles = "\"Data Source\",\"World\"\r\n\r\nUpdated\r\na,b\r\n1,2\r\n";
  for (const uint64_t block : {1, 7, 1 << 20}) {
    Csv csv(titles, {.skip_rows = 3, .block_bytes = block});
    CHECK(csv.kinds() == "a int64, b int64");
    CHECK(csv.ints(1) == Ints{2});
  }
  CHECK_THAT(Csv("a\n", {.skip_rows = 5}).error, Contains("an empty file"));
  CHECK_THAT(Csv("a\n", {.skip_rows = -1}).error, Contains("skip_rows is a number of lines"));
  const std::string spaced = "a, b, c\n1, 2, x\n3, 4, \"y, z\"\n";
  Csv skipped(spaced, {.dialect = {.skip_initial_space = true}});
  CHECK(skipped.kinds() == "a int64, b int64, c text");
  CHECK(skipped.texts(2) == Texts{"x", "y, z"});
  const std::string ragged = "a,b,c\n1,2,x\n4\n6,7\n";
  CHECK_THAT(Csv(ragged).error,
             Contains("row 1, line 3] 3 fields as in the first row. Received: 1.") &&
                 Contains("short_rows = true"));
  Csv filled(ragged, {.dialect = {.short_rows = true}});
  CHECK(filled.kinds() == "a int64, b float64, c text");
  CHECK(std::isnan(filled.doubles(1)[1]));
  CHECK(filled.texts(2) == Texts{"x", "", ""});
  CHECK_THAT(Csv(ragged, {.dialect = {.short_rows = true}, .kinds = {{"b", CsvKind::int64}}}).error,
             Contains("row 1, line 3, column \"b\"] a value of kind int64. Received: \"\""));
}

TEST_CASE("a first column without a name is an error that says so, and can be named") {
  const std::string text = "a,b\n0,1,2\n1,3,4\n";
  CHECK_THAT(Csv(text).error,
             Contains("row 0, line 2] 2 fields as in the first row. Received: 3.") &&
                 Contains("an index without a name: pass names of all columns"));
  CHECK(Csv(text, {.names = {"i", "a", "b"}}).ints(2) == Ints{2, 4});
}

TEST_CASE("signs that have another meaning are refused") {
  const std::string text = "a;b\n1;2\n";
  CHECK_THAT(Csv(text, {.dialect = {.comment = ','}}).error, Contains("a comment that cannot"));
  CHECK_THAT(Csv(text, {.values = {.decimal = '-'}}).error, Contains("a decimal that cannot"));
  CHECK_THAT(Csv(text, {.values = {.thousands = '.'}}).error, Contains("a thousands that cannot"));
  CHECK_THAT(Csv(text, {.dialect = {.delimiter = '\xE9'}}).error, Contains("a delimiter that"));
}

}  // namespace csv_dialect_test
