#include "tests/night/formats.hpp"

#ifdef NIGHT_ARROW
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/writer.h>

#include <tessera/datasets/arrow/read_parquet.hpp>
#include <tessera/framework/base/error.hpp>
#endif

namespace tessera::test {

#ifdef NIGHT_ARROW

namespace {

void check(const arrow::Status& status) {
  if (!status.ok()) throw FileError("Parquet", "Arrow writes the file", status.ToString(), "");
}

void write_parquet(const std::string& path, int64_t variant) {
  arrow::DoubleBuilder numbers;
  arrow::StringBuilder texts;
  for (int64_t row = 0; row < 20; ++row) {
    check(numbers.Append(static_cast<double>(row * variant) / 4));
    check(texts.Append(row % 3 == 0 ? "film" : "book"));
  }
  const auto schema = arrow::schema(
      {arrow::field("number", arrow::float64()), arrow::field("text", arrow::utf8())});
  const auto table =
      arrow::Table::Make(schema, {numbers.Finish().ValueOrDie(), texts.Finish().ValueOrDie()});
  const auto file = arrow::io::FileOutputStream::Open(path).ValueOrDie();
  check(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file, 8));
  check(file->Close());
}

}  // namespace

std::vector<Format> arrow_formats() {
  return {{"parquet", "table.parquet",
           [](const auto& path, Content& content) { content.add(datasets::read_parquet(path)); },
           write_parquet}};
}

#else

std::vector<Format> arrow_formats() { return {}; }

#endif

}  // namespace tessera::test
