#include <tessera/datasets/arrow/read_parquet.hpp>

#include <filesystem>

#include <ATen/ATen.h>
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/json/from_string.h>
#include <parquet/arrow/writer.h>

#include <tessera/datasets/read_csv.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/warnings.hpp"

namespace read_parquet_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

struct Written {
  const char* name;
  std::shared_ptr<arrow::DataType> type;
  const char* json;
};

std::shared_ptr<arrow::Array> array_of(const Written& column) {
  if (column.type->id() != arrow::Type::DICTIONARY) {
    return arrow::json::ArrayFromJSONString(column.type, column.json).ValueOrDie();
  }
  const auto texts = arrow::json::ArrayFromJSONString(arrow::utf8(), column.json).ValueOrDie();
  arrow::StringDictionaryBuilder builder;
  REQUIRE(builder.AppendArray(*texts).ok());
  return builder.Finish().ValueOrDie();
}

/// Writes a file with its Arrow schema, in row groups of `group` rows.
void write_parquet(const std::string& path, const std::vector<Written>& columns,
                   int64_t group = 1 << 20) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const Written& column : columns) {
    arrays.push_back(array_of(column));
    fields.push_back(arrow::field(column.name, arrays.back()->type()));
  }
  const auto file = arrow::io::FileOutputStream::Open(path).ValueOrDie();
  parquet::WriterProperties::Builder properties;
  // pandas' default compression.
  properties.enable_page_checksum()->compression(parquet::Compression::SNAPPY);
  const auto types = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
  REQUIRE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file, group,
                                     properties.build(), types)
              .ok());
  REQUIRE(file->Close().ok());
}

const std::vector<Written> patients = {
    {"age", arrow::int64(), "[63, 67, null, 37]"},
    {"id", arrow::int64(), "[1, 2, 3, 9007199254740993]"},
    {"chol", arrow::float64(), "[233.5, null, 250, 1e300]"},
    {"ill", arrow::boolean(), "[true, false, true, false]"},
    {"smokes", arrow::boolean(), "[true, null, false, true]"},
    {"thal", arrow::utf8(), R"(["fixed", "re, versible", null, "über"])"},
    {"zone", arrow::dictionary(arrow::int32(), arrow::utf8()), R"(["b", "a", null, "b"])"},
    {"note", arrow::large_utf8(), R"(["", "x", "y", "long text"])"},
    {"none", arrow::null(), "[null, null, null, null]"}};
const std::string patients_csv =
    "age,id,chol,ill,smokes,thal,zone,note,none\n"
    "63,1,233.5,True,True,fixed,b,,\n67,2,,False,,\"re, versible\",a,x,\n"
    ",3,250,True,False,,,y,\n37,9007199254740993,1e300,False,True,über,b,long text,\n";

/// Describes the difference between two tables; "" if they are equal.
std::string table_difference(const Table& actual, const Table& expected) {
  if (datasets::describe(actual) != datasets::describe(expected)) {
    return datasets::describe(actual) + " in place of " + datasets::describe(expected);
  }
  for (const std::string& name : expected.names()) {
    const bool same = expected[name].is_text() ? actual[name].texts() == expected[name].texts()
                                               : at::allclose(actual[name].numbers(),
                                                              expected[name].numbers(), 0, 0, true);
    if (!same) return "other values in " + name;
  }
  return "";
}

}  // namespace

TEST_CASE("a Parquet file gives the same table as a CSV file of the same data") {
  const test::TempFolder folder;
  const std::string path = folder / "patients.parquet", csv = folder / "patients.csv";
  test::write_file(csv, patients_csv);
  const Table expected = datasets::read_csv(csv);
  for (const int64_t group : {1, 3, 100}) {
    INFO(group << " rows in a group");
    write_parquet(path, patients, group);
    CHECK(table_difference(datasets::read_parquet(path), expected) == "");
    const std::vector<std::string> some = {"thal", "chol", "age"};
    for (const int64_t rows : {0, 2, 3, 9}) {
      const Table selection = datasets::read_parquet(path, {.columns = some, .rows = rows});
      CHECK(selection.rows() == std::min<int64_t>(rows, 4));
      CHECK(selection.names() == std::vector<std::string>{"age", "chol", "thal"});
    }
    CHECK(datasets::describe(datasets::read_parquet(path, {.columns = some, .rows = 2})) ==
          "2 rows: age int64, chol float64, thal text");
  }
}

TEST_CASE("numbers of Parquet files keep their dtype or get the next wider supported one") {
  const test::TempFolder folder;
  const std::string path = folder / "numbers.parquet";
  write_parquet(path, {{"i8", arrow::int8(), "[-128, 127]"},
                       {"u8", arrow::uint8(), "[0, 255]"},
                       {"i16", arrow::int16(), "[-32768, 32767]"},
                       {"u16", arrow::uint16(), "[0, 65535]"},
                       {"i32", arrow::int32(), "[-2147483648, 2147483647]"},
                       {"u32", arrow::uint32(), "[0, 4294967295]"},
                       {"u64", arrow::uint64(), "[0, 9223372036854775807]"},
                       {"large", arrow::uint64(), "[null, 18446744073709551615]"},
                       {"f16", arrow::float16(), "[0.5, null]"},
                       {"f32", arrow::float32(), "[null, 0.25]"},
                       {"price", arrow::decimal128(9, 2), R"(["12.34", null])"},
                       {"bytes", arrow::binary(), R"(["ab", "c"])"}});
  const Table table = datasets::read_parquet(path);
  CHECK(datasets::describe(table) ==
        "2 rows: i8 int8, u8 uint8, i16 int16, u16 int32, i32 int32, u32 int64, u64 int64, "
        "large float64, f16 float16, f32 float32, price float64, bytes text");
  const auto values = [&](const char* name) {
    const at::Tensor numbers = table[name].numbers().to(at::kDouble).nan_to_num(-1);
    return std::pair(numbers[0].item<double>(), numbers[1].item<double>());
  };
  CHECK(values("i8") == std::pair(-128.0, 127.0));
  CHECK(values("u8") == std::pair(0.0, 255.0));
  CHECK(values("i16") == std::pair(-32768.0, 32767.0));
  CHECK(values("u16") == std::pair(0.0, 65535.0));
  CHECK(values("i32") == std::pair(-2147483648.0, 2147483647.0));
  CHECK(values("u32") == std::pair(0.0, 4294967295.0));
  CHECK(table["u64"].numbers()[1].item<int64_t>() == std::numeric_limits<int64_t>::max());
  CHECK(values("large") == std::pair(-1.0, 18446744073709551616.0));
  CHECK(values("f16") == std::pair(0.5, -1.0));
  CHECK(values("f32") == std::pair(-1.0, 0.25));
  CHECK(values("price") == std::pair(12.34, -1.0));
  CHECK(table["bytes"].texts() == std::vector<std::string>{"ab", "c"});
}

TEST_CASE("integers that a column with missing values rounds give one warning") {
  const test::TempFolder folder;
  const std::string path = folder / "ids.parquet";
  const test::Warnings warnings;
  write_parquet(path,
                {{"id", arrow::int64(), "[9007199254740993, null, 9007199254740995]"},
                 {"unsigned", arrow::uint64(), "[null, 18446744073709551615, 1]"},
                 {"even", arrow::int64(), "[9007199254740994, null, 9007199254740996]"},
                 {"small", arrow::int64(), "[-9007199254740992, null, 9007199254740992]"},
                 {"complete", arrow::int64(), "[9007199254740993, 1, 2]"}},
                /*group=*/1);  // missing values and large ones in different row groups
  const Table table = datasets::read_parquet(path);
  CHECK(table["id"].numbers()[0].item<double>() == 9007199254740992.0);
  CHECK(table["complete"].numbers()[0].item<int64_t>() == 9007199254740993);
  const std::string rule =
      "] integers above 2^53 are rounded, as a column with missing values is float64. To fix: "
      "write it as texts, or as float64 to silence this.\n";
  CHECK(warnings.text() == "Warning: [" + path + ", column \"id\"" + rule + "Warning: [" + path +
                               ", column \"unsigned\"" + rule);
}

TEST_CASE("lists of a fixed size become rows of a tensor") {
  const test::TempFolder folder;
  const std::string path = folder / "lists.parquet";
  const auto pair = arrow::fixed_size_list(arrow::int32(), 2);
  write_parquet(
      path,
      {{"v", arrow::fixed_size_list(arrow::float32(), 3), "[[1, 2, 3], [4, null, 6], [7, 8, 9]]"},
       {"p", pair, "[[1, 2], [3, 4], [5, 6]]"},
       {"m", arrow::fixed_size_list(pair, 2),
        "[[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]"}},
      2);
  const Table table = datasets::read_parquet(path);
  CHECK(datasets::describe(table) == "3 rows: v float32 (3,), p int32 (2,), m int32 (2, 2)");
  CHECK(difference(table["v"].numbers().nan_to_num(-1),
                   at::tensor({1, 2, 3, 4, -1, 6, 7, 8, 9}, at::kFloat).view({3, 3})) == "");
  CHECK(table["p"].numbers().equal(at::arange(1, 7, at::kInt).view({3, 2})));
  CHECK(table["m"].numbers().equal(at::arange(1, 13, at::kInt).view({3, 2, 2})));
  CHECK(datasets::read_parquet(path, {.columns = {"p"}, .rows = 1})["p"].numbers().equal(
      at::tensor({1, 2}, at::kInt).view({1, 2})));
}

TEST_CASE("decimals of every width become float64, and bytes of every kind texts") {
  const test::TempFolder folder;
  const std::string path = folder / "kinds.parquet";
  const auto media =
      arrow::struct_({arrow::field("bytes", arrow::binary()), arrow::field("path", arrow::utf8())});
  write_parquet(path, {{"a", arrow::smallest_decimal(7, 2), R"(["12.34", null])"},
                       {"b", arrow::smallest_decimal(15, 3), R"(["1.500", "-2.250"])"},
                       {"c", arrow::decimal256(60, 1), R"(["3.5", "-4.5"])"},
                       {"id", arrow::fixed_size_binary(3), R"(["abc", null])"},
                       {"view", arrow::utf8_view(), R"(["a text of more bytes than 12", ""])"},
                       {"image", media, R"([["\u0001PNG", null], [null, "a.png"]])"}});
  const Table table = datasets::read_parquet(path);
  CHECK(datasets::describe(table) ==
        "2 rows: a float64, b float64, c float64, id text, view text, image text");
  CHECK(table["a"].numbers()[0].item<double>() == 12.34);
  CHECK(table["a"].numbers()[1].isnan().item<bool>());
  CHECK(table["b"].numbers().equal(at::tensor({1.5, -2.25}, at::kDouble)));
  CHECK(table["c"].numbers().equal(at::tensor({3.5, -4.5}, at::kDouble)));
  CHECK(table["id"].texts() == std::vector<std::string>{"abc", ""});
  CHECK(table["view"].texts() == std::vector<std::string>{"a text of more bytes than 12", ""});
  CHECK(table["image"].texts() == std::vector<std::string>{"\1PNG", ""});
}

TEST_CASE("a folder of Parquet files is one table, with columns of the values in its names") {
  const test::TempFolder folder;
  const auto write = [&](const std::string& inner, const std::string& json, const char* texts) {
    std::filesystem::create_directories(folder / inner);
    write_parquet(folder / (inner + "/part-0.parquet"),
                  {{"x", arrow::int64(), json.c_str()}, {"t", arrow::utf8(), texts}});
  };
  write("data/year=2023/zone=a%2Fb", "[1, 2]", R"(["p", "q"])");
  write("data/year=2024/zone=__HIVE_DEFAULT_PARTITION__", "[null]", R"(["r"])");
  write("data/_hidden=1", "[7]", R"(["no"])");
  const std::string path = folder / "data";
  const Table table = datasets::read_parquet(path);
  CHECK(datasets::describe(table) == "3 rows: x float64, t text, year int64, zone text");
  CHECK(difference(table["x"].numbers().nan_to_num(-1), at::tensor({1.0, 2.0, -1.0})) == "");
  CHECK(table["t"].texts() == std::vector<std::string>{"p", "q", "r"});
  CHECK(table["year"].numbers().equal(at::tensor({2023, 2023, 2024}, at::kLong)));
  CHECK(table["zone"].texts() == std::vector<std::string>{"a/b", "a/b", ""});
  CHECK(datasets::describe(datasets::read_parquet(path, {.columns = {"x", "year"}, .rows = 1})) ==
        "1 row: x int64, year int64");
  CHECK(datasets::describe(datasets::read_parquet(path, {.columns = {"year"}})) ==
        "3 rows: year int64");
  const auto error = [&] { return test::error_line([&] { datasets::read_parquet(path); }); };
  write_parquet(folder / "data/year=2024/zone=c.parquet", {{"x", arrow::int64(), "[1]"}});
  CHECK_THAT(error(), Contains("zone=c.parquet] a path with values of the same names"));
  std::filesystem::remove(folder / "data/year=2024/zone=c.parquet");
  write("data/year=2024/zone=c", "[1]", R"(["r"])");
  write_parquet(folder / "data/year=2024/zone=c/part-0.parquet",
                {{"x", arrow::utf8(), R"(["1"])"}, {"t", arrow::utf8(), R"(["r"])"}});
  CHECK_THAT(error(), Contains("zone=c/part-0.parquet] the columns of the other files: \"x\", "
                               "\"t\""));
  std::filesystem::create_directories(folder / "empty");
  CHECK_THAT(test::error_line([&] { datasets::read_parquet(folder / "empty"); }),
             Contains("empty] a folder of .parquet files. Received: none in it."));
}

TEST_CASE("times of Parquet files become integers in the file's unit") {
  const test::TempFolder folder;
  const std::string path = folder / "times.parquet";
  write_parquet(path, {{"ms", arrow::timestamp(arrow::TimeUnit::MILLI), R"(["1970-01-02"])"},
                       {"us", arrow::timestamp(arrow::TimeUnit::MICRO, "UTC"), "[17000000000000]"},
                       {"ns", arrow::timestamp(arrow::TimeUnit::NANO), "[1]"},
                       {"day", arrow::date32(), "[19000]"},
                       {"time", arrow::time32(arrow::TimeUnit::MILLI), "[3600000]"},
                       {"long", arrow::duration(arrow::TimeUnit::SECOND), "[7]"}});
  const Table table = datasets::read_parquet(path);
  CHECK(datasets::describe(table) ==
        "1 row: ms int64, us int64, ns int64, day int64, time int64, long int64");
  const std::vector<int64_t> expected = {86400000, 17000000000000, 1, 19000, 3600000, 7};
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO(table.names()[i]);
    CHECK(table[table.names()[i]].numbers().item<int64_t>() == expected[i]);
  }
}

TEST_CASE("many rows are read in blocks, and repeated texts by their dictionary") {
  const test::TempFolder folder;
  const std::string path = folder / "long.parquet";
  constexpr int64_t rows = 150000;
  std::string numbers = "[0", words = "[\"word 0\"";
  for (int64_t i = 1; i < rows; ++i) {
    numbers += i == 140000 ? ", null" : str(", ", i);
    words += str(", \"word ", i % 1000, "\"");
  }
  numbers += "]", words += "]";
  write_parquet(path,
                {{"n", arrow::int32(), numbers.c_str()},
                 {"w", arrow::dictionary(arrow::int32(), arrow::utf8()), words.c_str()}},
                70000);
  const Table table = datasets::read_parquet(path);
  CHECK(datasets::describe(table) == "150000 rows: n float64, w text");
  at::Tensor expected = at::arange(rows, at::kDouble);
  expected[140000] = -1;
  CHECK(difference(table["n"].numbers().nan_to_num(-1), expected) == "");
  int64_t wrong = 0;
  for (size_t i = 0; i < rows; ++i) wrong += table["w"].texts()[i] != str("word ", i % 1000);
  CHECK(wrong == 0);
  // Without the block that has the missing value, the column keeps its written dtype.
  const Table first = datasets::read_parquet(path, {.rows = 100000});
  CHECK(datasets::describe(first) == "100000 rows: n int32, w text");
}

TEST_CASE("a missing column of a Parquet file gives a one-line error") {
  const test::TempFolder folder;
  const std::string path = folder / "trips.parquet";
  write_parquet(path, {{"fare", arrow::float64(), "[1.5]"},
                       {"stops", arrow::list(arrow::int64()), "[[1, 2]]"},
                       {"from", arrow::struct_({arrow::field("x", arrow::int32())}), "[[1]]"},
                       {"id", arrow::uint64(), "[9223372036854775808]"},
                       {"zone", arrow::utf8(), R"(["a"])"}});
  const auto error = [&](const ParquetOptions& options) {
    return test::error_line([&] { datasets::read_parquet(path, options); });
  };
  CHECK_THAT(error({}),
             Contains("trips.parquet, column \"stops\"] a column of numbers, bools, times "
                      "or texts. Received: list<") &&
                 Contains("To fix: name the other columns in ParquetOptions"));
  CHECK_THAT(error({.columns = {"from"}}), Contains("column \"from\"] a column of numbers"));
  CHECK_THAT(error({.columns = {"id"}}),
             Contains("column \"id\"] integers below 2^63. Received: larger ones."));
  CHECK_THAT(error({.columns = {"zoen"}}),
             Contains("trips.parquet] one of the 5 columns. Received: \"zoen\". To fix: write "
                      "\"zone\""));
  CHECK_THAT(error({.rows = -1}), Contains("trips.parquet] a number of rows. Received: -1."));
  // Columns after lists and structs are found.
  const Table table = datasets::read_parquet(path, {.columns = {"zone", "fare"}});
  CHECK(datasets::describe(table) == "1 row: fare float64, zone text");
  CHECK(table["zone"].texts() == std::vector<std::string>{"a"});
  write_parquet(path, {{"x", arrow::int32(), "[1]"}, {"x", arrow::int32(), "[2]"}});
  CHECK_THAT(error({}), Contains("trips.parquet] each column has a name of its own. Received: "
                                 "\"x\" twice."));
}

TEST_CASE("an incomplete Parquet file is a FileError that names the file") {
  const test::TempFolder folder;
  const std::string path = folder / "damaged.parquet";
  const auto error = [&] { return test::error_line([&] { datasets::read_parquet(path); }); };
  CHECK_THAT(error(), Contains("damaged.parquet]") && Contains("No such file"));
  test::write_file(path, patients_csv);
  CHECK_THAT(error(), Contains("damaged.parquet] a Parquet file. Received: Parquet magic bytes"));
  test::write_file(path, "");
  CHECK_THAT(error(), Contains("damaged.parquet] a Parquet file. Received: Parquet file size"));
  write_parquet(path, patients);
  const std::string contents = test::read_file(path);
  for (size_t bytes = 0; bytes < contents.size(); bytes += 97) {
    test::write_file(path, contents.substr(0, bytes));
    INFO("the first " << bytes << " bytes of " << contents.size());
    CHECK_THROWS_AS(datasets::read_parquet(path), FileError);
  }
  // Pages have checksums, but the metadata on their positions and contents does not.
  int64_t refused = 0;
  for (size_t byte = 0; byte < contents.size(); ++byte) {
    for (const int flip : {0x01, 0xff}) {
      std::string damaged = contents;
      damaged[byte] = static_cast<char>(damaged[byte] ^ flip);
      test::write_file(path, damaged);
      INFO("byte " << byte << " of " << contents.size() << " ^ " << flip);
      try {
        datasets::read_parquet(path);
      } catch (const FileError& caught) {
        CHECK_THAT(caught.what(), Contains("damaged.parquet"));
        ++refused;
      }
    }
  }
  INFO(refused << " of " << 2 * contents.size() << " were refused");
  CHECK(refused > static_cast<int64_t>(contents.size()) / 2);
}

}  // namespace read_parquet_test
