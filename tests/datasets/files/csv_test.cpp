#include <cmath>
#include <cstdlib>
#include <random>

#include <tessera/framework/base/error.hpp>

#include "tests/datasets/files/csv_case.hpp"

namespace csv_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::Csv;

namespace {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("column kinds are inferred: the narrowest that holds all values") {
  Csv csv(
      "i,f,b,t,e,late\n"
      "1,1.5,true,x,1e3,1\n"
      "-2,2,False,7,.5,2\n"
      "+3,-3e-2,TRUE, y ,-inf,z\n");
  CHECK(csv.kinds() == "i int64, f float64, b bool, t text, e float64, late text");
  CHECK(csv.ints(0) == Ints{1, -2, 3});
  CHECK(csv.doubles(1) == Doubles{1.5, 2, -0.03});
  CHECK(csv.ints(2) == Ints{1, 0, 1});
  CHECK(csv.texts(3) == Texts{"x", "7", " y "});
  CHECK(csv.doubles(4) == Doubles{1000, 0.5, -INFINITY});
  // Keeps the original texts, although the first ones look like numbers.
  CHECK(csv.texts(5) == Texts{"1", "2", "z"});
}

TEST_CASE("missing values make numbers float64, and texts empty") {
  Csv csv("i,b,t,none,late\n,true,a,,1\n2,NA,null,NaN,\n3,False,c,,3\n");
  CHECK(csv.kinds() == "i float64, b float64, t text, none float64, late float64");
  const Doubles i = csv.doubles(0), b = csv.doubles(1), none = csv.doubles(3);
  CHECK((std::isnan(i[0]) && i[1] == 2 && i[2] == 3));
  CHECK((b[0] == 1 && std::isnan(b[1]) && b[2] == 0));
  CHECK(csv.texts(2) == Texts{"a", "", "c"});
  CHECK((std::isnan(none[0]) && std::isnan(none[1]) && std::isnan(none[2])));
  const Doubles late = csv.doubles(4);
  CHECK((late[0] == 1 && std::isnan(late[1]) && late[2] == 3));
  Csv own("a\n-\n5\n", {.values = {.missing = {"-"}}});
  CHECK(own.kinds() == "a float64");
  CHECK(own.doubles(0)[1] == 5);
}

TEST_CASE("quoted fields hold delimiters, line ends and doubled quotes") {
  Csv csv(
      "\xEF\xBB\xBFname,\"a \"\"b\"\"\"\r\n\"x,y\",1\r\n\r\n\"two\nlines\",\"2\"\r\n"
      "5\" pipe,3\r\n\"NA\",4\r\n\"q\"tail,5");
  CHECK(csv.kinds() == "name text, a \"b\" int64");
  CHECK(csv.texts(0) == Texts{"x,y", "two\nlines", "5\" pipe", "", "qtail"});
  CHECK(csv.ints(1) == Ints{1, 2, 3, 4, 5});
}

TEST_CASE("columns can be named, selected and given a kind; rows can be limited") {
  const std::string text = "a;b;a;\n1;x;0.5;01\n2;y;0;02\n3;z;oops;3\n";
  CHECK(Csv(text, {.dialect = {.delimiter = ';'}}).kinds() ==
        "a int64, b text, a.1 text, Unnamed: 3 int64");
  Csv selection(text, {.dialect = {.delimiter = ';'},
                       .columns = {"Unnamed: 3", "a"},
                       .kinds = {{"Unnamed: 3", CsvKind::text}},
                       .rows = 2});
  CHECK(selection.kinds() == "a int64, Unnamed: 3 text");
  CHECK(selection.file.rows == 2);
  CHECK(selection.texts(1) == Texts{"01", "02"});
  CHECK(Csv(text, {.dialect = {.delimiter = ';'}, .rows = 2}).kinds() ==
        "a int64, b text, a.1 float64, Unnamed: 3 int64");
  CHECK(Csv("1,2\n3,4\n", {.header = false}).kinds() == "0 int64, 1 int64");
  CHECK(Csv("1,2\n", {.header = false, .names = {"u", "v"}}).kinds() == "u int64, v int64");
  CHECK(Csv("a,b\n").kinds() == "a float64, b float64");
  CHECK(Csv("a\tb\n1\t2", {.dialect = {.delimiter = '\t'}}).ints(1) == Ints{2});
}

TEST_CASE("numbers are parsed as in Python") {
  Csv csv(
      "a,b\n9223372036854775807,0.1\n-9223372036854775808,1.7976931348623157e308\n"
      "007,4.9e-324\n");
  CHECK(csv.ints(0) == Ints{INT64_MAX, INT64_MIN, 7});
  CHECK(csv.doubles(1) == Doubles{0.1, 1.7976931348623157e308, 4.9e-324});
  Csv wide("a\n9223372036854775808\n1e400\n-1e-400\n");
  CHECK(wide.kinds() == "a float64");
  CHECK(wide.doubles(0) == Doubles{9223372036854775808.0, INFINITY, 0});
  CHECK(Csv("a\n0x10\n").kinds() == "a text");
  CHECK(Csv("a\n1_000\n").kinds() == "a text");
  CHECK(Csv("a\n--1\n").kinds() == "a text");
  CHECK(Csv("a\n1 \n").kinds() == "a int64");
}

TEST_CASE("numbers with any number of digits are rounded once") {
  std::mt19937_64 random(7);
  std::string text = "x\n0.5\n";
  Doubles expected = {0.5};
  for (int i = 0; i < 50000; ++i) {
    const uint64_t digits = random() >> random() % 64;
    std::string number = std::to_string(digits);
    const size_t point = random() % (number.size() + 1);
    if (i % 3) number.insert(point, ".");
    if (i % 5 == 0) number.insert(0, "-");
    if (i % 7 == 0) number += str("e", int(random() % 40) - 20);
    expected.push_back(std::strtod(number.c_str(), nullptr));
    text += number + "\n";
  }
  CHECK(Csv(text, {.kinds = {{"x", CsvKind::float64}}}).doubles(0) == expected);
}

TEST_CASE("the result does not depend on blocks and threads") {
  std::string text = "n,x,t\n";
  for (int i = 0; i < 500; ++i) {
    text += str(i, ",", i % 7 == 3 ? "" : str(i / 8.0), ",",
                i % 5 == 0 ? "\"a \"\"b\"\",\n" + str(i) + "\"" : "c" + str(i), "\n");
  }
  Csv whole(text, {.threads = 1});
  REQUIRE(whole.kinds() == "n int64, x float64, t text");
  const Ints n = whole.ints(0);
  const Doubles x = whole.doubles(1);
  const Texts t = whole.texts(2);
  CHECK(n[499] == 499);
  CHECK(t[495] == "a \"b\",\n495");
  for (const uint64_t block : {1, 7, 64, 1000}) {
    for (const int64_t threads : {1, 3}) {
      CAPTURE(block, threads);
      Csv cut(text, {.block_bytes = block, .threads = threads});
      REQUIRE(cut.kinds() == whole.kinds());
      CHECK(cut.ints(0) == n);
      const Doubles y = cut.doubles(1);
      for (size_t i = 0; i < x.size(); ++i) CHECK((x[i] == y[i] || std::isnan(x[i] + y[i])));
      CHECK(cut.texts(2) == t);
    }
  }
}

TEST_CASE("errors name file, row, line and column") {
  const auto error = [](const std::string& text, const CsvReadOptions& options = {}) {
    return Csv(text, options).error;
  };
  CHECK_THAT(error("a,b\n1,2\n\n3\n"),
             Contains("case.csv, row 1, line 4] 2 fields as in the first row. Received: 1."));
  CHECK_THAT(error("a,b\n1,2\n3,4,5,6\n"), Contains("row 1, line 3] 2 fields") &&
                                               Contains("Received: 4. To fix: correct the row"));
  CHECK_THAT(error("a,age\n1,2\n\"x\ny\",old\n", {.kinds = {{"age", CsvKind::int64}}}),
             Contains("case.csv, row 1, line 4, column \"age\"] a value of kind int64. "
                      "Received: \"old\"."));
  CHECK_THAT(error("a\n1\n2.5\n", {.kinds = {{"a", CsvKind::int64}}}), Contains("row 1, line 3"));
  CHECK_THAT(error("a,b\n,1\n", {.kinds = {{"a", CsvKind::int64}}}),
             Contains("kind int64. Received: \"\"."));
  CHECK_THAT(error("a,b\n1,\"2\n3,4\n5,6\n"),
             Contains("case.csv, line 2] a quote that ends. Received: the end of the file"));
  CHECK_THAT(error(std::string("a,b\n1,\0002\n", 9)),
             Contains("case.csv, line 2] a text without zero bytes. Received: one at byte 6."));
  CHECK_THAT(error(""), Contains("case.csv] a row of fields. Received: an empty file."));
  CHECK_THAT(error("\n\r\n\n"), Contains("an empty file"));
  CHECK_THAT(error("age,b\n1,2\n", {.columns = {"ages"}}),
             Contains("one of the 2 columns. Received: \"ages\". To fix: write \"age\""));
  CHECK_THAT(error("a,b\n", {.names = {"a"}}), Contains("2 names, one for each column"));
  CHECK_THAT(error("a,b\n", {.dialect = {.delimiter = 'e'}}), Contains("a delimiter"));
  CHECK_THAT(error("a,b\n", {.rows = -1}), Contains("a number of rows"));
  CHECK_THAT(test::error_line([] { read_csv_file("/nonexistent.csv"); }),
             Contains("/nonexistent.csv]"));
  // Holds for errors in any thread and block.
  std::string text = "a,b\n";
  for (int i = 0; i < 1000; ++i) text += i == 777 ? "1,2,3\n" : "1,2\n";
  for (const uint64_t block : {50, 100000}) {
    CHECK_THAT(error(text, {.block_bytes = block, .threads = 3}), Contains("row 777, line 779]"));
  }
}

TEST_CASE("a million columns and an endless row are refused in bounded memory") {
  CHECK_THAT(Csv(std::string(1'000'000, ',') + "\n").error,
             Contains("case.csv, line 1] at most 100000 columns. Received: more."));
  CHECK_THAT(Csv("a,b\n1,\"" + std::string(size_t{80} << 20, 'x')).error,
             Contains("case.csv, line 2] a row of at most 67108864 bytes"));
}

}  // namespace csv_test
