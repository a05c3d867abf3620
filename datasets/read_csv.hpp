#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/data/table.hpp>

namespace tessera {

/// The options of datasets::read_csv(); defaults are those of pandas.read_csv.
struct CsvOptions {
  /// Field separator, such as a comma, a semicolon or a tab.
  char delimiter = ',';
  /// Whether the first row holds the column names; otherwise they are "0", "1" and so on.
  bool header = true;
  /// Names of all columns; override those in the header.
  std::vector<std::string> names = {};
  /// Columns to keep, in any order (default: all).
  std::vector<std::string> columns = {};
  /// "text", "bool" or a numeric dtype by column name, such as {{"zip", "text"}}; other dtypes are
  /// inferred.
  std::map<std::string, std::string> dtypes = {};
  /// Texts that mean a missing value, besides an empty field, NA, NaN, null and similar.
  std::vector<std::string> missing = {};
  /// Number of rows to read, from the first on (default: all).
  std::optional<int64_t> rows = std::nullopt;
};

namespace datasets {

/// Reads a CSV file (RFC 4180), gzipped if its name ends in .gz, on all cores. A column is int64,
/// float64, bool (true, True, TRUE) or text, the first of these that fits all its values. A numeric
/// or bool column with missing values is float64 with NaN for these; missing texts are empty.
/// describe() shows what was inferred.
///
///     Table table = datasets::read_csv("heart.csv", {.dtypes = {{"zip", "text"}}});
///     std::puts(datasets::describe(table).c_str());
///
/// Throws FileError naming the file, the row (from 0, as in the table), the line and the column if
/// a row or value does not fit the others; ConfigError for an invalid option or an unknown column.
Table read_csv(const std::string& path, const CsvOptions& options = {});

/// Returns one line with the number of rows and the dtype of each column, and its shape if a row
/// has more than one number: `303 rows: age int64, thal text, image uint8 (28, 28)`.
std::string describe(const Table& table);

}  // namespace datasets
}  // namespace tessera
