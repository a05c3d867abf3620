#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/data/table.hpp>

namespace tessera {

/// How datasets::read_csv() reads a file; what is left out is as in pandas.read_csv.
struct CsvOptions {
  /// What stands between fields: ',', ';', '\t'.
  char delimiter = ',';
  /// Whether the first row has the names of the columns; without them they are "0", "1" and on.
  bool header = true;
  /// Names of all columns, in place of those in the header.
  std::vector<std::string> names = {};
  /// The columns to keep, in any order; empty: all.
  std::vector<std::string> columns = {};
  /// "text", "bool" or a dtype of numbers for columns by their names, such as {{"zip", "text"}};
  /// those of the others are inferred.
  std::map<std::string, std::string> dtypes = {};
  /// What stands for a missing value, beside an empty field, NA, NaN, null and their like.
  std::vector<std::string> missing = {};
  /// How many of the first rows; absent: all.
  std::optional<int64_t> rows = std::nullopt;
};

namespace datasets {

/// Reads a CSV file (RFC 4180), gzipped if its name ends in .gz, on all cores. A column is int64,
/// float64, bool (true, True, TRUE) or texts, the first of these that has all its values; one of
/// numbers or truth values with missing ones is float64, those being NaN. Missing texts are empty.
/// describe() says what was inferred.
///
///     Table table = datasets::read_csv("heart.csv", {.dtypes = {{"zip", "text"}}});
///     std::puts(datasets::describe(table).c_str());
///
/// Throws FileError naming the file, the row (from 0, as in the table), the line and the column for
/// what is not as in the other rows; ConfigError for a wrong option or a column that is not there.
Table read_csv(const std::string& path, const CsvOptions& options = {});

/// A line of text: the number of rows, and each column with its dtype, and its shape where a row
/// has more than one number: `303 rows: age int64, thal text, image uint8 (28, 28)`.
std::string describe(const Table& table);

}  // namespace datasets
}  // namespace tessera
