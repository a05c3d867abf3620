#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/datasets/files/csv.hpp>

#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"

namespace tessera::test {

using namespace detail;

/// A CSV file with this text, and the result of reading it.
class Csv {
 public:
  explicit Csv(const std::string& text, CsvReadOptions options = {}) {
    test::write_file(path(), text);
    error = test::error_line([&] { file = read_csv_file(path(), options); });
  }
  std::string path() const { return folder_ / "case.csv"; }
  /// Returns the columns' kinds, such as "a int64, b text", or the error.
  std::string kinds() const {
    std::string text = error == "no error" ? "" : error;
    for (const CsvColumn& column : file.columns) {
      text += (text.empty() ? "" : ", ") + column.name + " " + csv_kind_name(column.kind);
    }
    return text;
  }
  std::vector<double> doubles(size_t i) {
    std::vector<double> values(static_cast<size_t>(file.rows));
    file.columns[i].take(values.data());
    return values;
  }
  std::vector<int64_t> ints(size_t i) {
    std::vector<int64_t> values(static_cast<size_t>(file.rows));
    file.columns[i].take(values.data());
    return values;
  }
  std::vector<std::string> texts(size_t i) { return file.columns[i].take_texts(); }

  CsvFile file;
  std::string error;

 private:
  test::TempFolder folder_;
};

}  // namespace tessera::test
