#include <tessera/datasets/read_csv.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"

namespace read_csv_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

const std::string text =
    "age,chol,thal,ill,zip\n63,233.5,fixed,True,01234\n67,,\"re, versible\",False,00001\n"
    "37,250,,True,99999\n";

}  // namespace

TEST_CASE("a table has the columns of a CSV file, and describe() lists them") {
  const test::TempFolder folder;
  const std::string path = folder / "heart.csv";
  test::write_file(path, text);
  Table table = datasets::read_csv(path, {.dtypes = {{"zip", "text"}, {"age", "float32"}}});
  CHECK(datasets::describe(table) ==
        "3 rows: age float32, chol float64, thal text, ill bool, zip text");
  CHECK(difference(table["age"].numbers(), at::tensor({63, 67, 37}, at::kFloat)) == "");
  CHECK(table["chol"].numbers()[0].item<double>() == 233.5);
  CHECK(table["chol"].numbers().isnan().sum().item<int64_t>() == 1);
  CHECK(table["thal"].texts() == std::vector<std::string>{"fixed", "re, versible", ""});
  CHECK(difference(table.pop("ill").numbers(), at::tensor({1, 0, 1}).to(at::kBool)) == "");
  CHECK(table["zip"].texts()[1] == "00001");
  const Table selection = datasets::read_csv(path, {.columns = {"zip", "age"}, .rows = 2});
  CHECK(datasets::describe(selection) == "2 rows: age int64, zip int64");
  // Users may change what they have read.
  table["age"].numbers().add_(1);
  CHECK(table.matrix({"age"}).add_(1)[0].item<float>() == 65);
  CHECK(table.take(std::vector<int64_t>{1})["age"].numbers().add_(1).item<float>() == 69);
  table.add("pixels", at::zeros({3, 2, 4}));
  CHECK_THAT(datasets::describe(table), Contains(", pixels float32 (2, 4)"));
}

TEST_CASE("a table of a spreadsheet's export: titles, comments, signs and encoding") {
  const test::TempFolder folder;
  const std::string path = folder / "export.csv";
  test::write_file(path,
                   "Exported 2024\rGr\xF6\xDF"
                   "e; Preis\r1,75; 1.203,20 # net\r1,82\r");
  const Table table = datasets::read_csv(path, {.delimiter = ';',
                                                .skip_rows = 1,
                                                .comment = '#',
                                                .decimal = ',',
                                                .thousands = '.',
                                                .skip_initial_space = true,
                                                .short_rows = true,
                                                .encoding = "cp1252"});
  CHECK(datasets::describe(table) ==
        "2 rows: Gr\xC3\xB6\xC3\x9F"
        "e float64, Preis float64");
  CHECK(difference(table["Gr\xC3\xB6\xC3\x9F"
                         "e"]
                       .numbers(),
                   at::tensor({1.75, 1.82}, at::kDouble)) == "");
  CHECK(table["Preis"].numbers()[0].item<double>() == 1203.2);
  CHECK(table["Preis"].numbers()[1].isnan().item<bool>());
  CHECK_THAT(test::error_line([&] { datasets::read_csv(path, {.encoding = "cp1251"}); }),
             Contains("encoding is one of"));
}

TEST_CASE("a wrong dtype, column or value gives a one-line error with its position") {
  const test::TempFolder folder;
  const std::string path = folder / "heart.csv";
  test::write_file(path, text);
  const auto error = [&](const CsvOptions& options) {
    return test::error_line([&] { datasets::read_csv(path, options); });
  };
  CHECK_THAT(error({.dtypes = {{"age", "float16"}}}),
             Contains("[read_csv, column \"age\"] a dtype of columns. Received: \"float16\"."));
  CHECK_THAT(error({.dtypes = {{"aeg", "int64"}}}),
             Contains("heart.csv] one of the 5 columns. Received: \"aeg\". To fix: write \"age\""));
  CHECK_THAT(error({.dtypes = {{"thal", "int32"}}}),
             Contains("heart.csv, row 0, line 2, column \"thal\"] a value of kind int64. "
                      "Received: \"fixed\"."));
  test::write_file(path, "a\n3000000000\n");
  CHECK_THAT(error({.dtypes = {{"a", "int32"}}}), Contains("column \"a\"] numbers of 32 bits"));
}

}  // namespace read_csv_test
