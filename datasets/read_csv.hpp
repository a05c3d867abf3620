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
  /// Field separator, such as a comma, a semicolon or a tab. A blank separates by runs of blanks
  /// and tabs (pandas: sep=r"\s+").
  char delimiter = ',';
  /// Whether the first row holds the column names; otherwise they are "0", "1" and so on.
  bool header = true;
  /// Names of all columns; override those in the header, which may lack the name of a first column
  /// (pandas: an index).
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
  /// Number of lines to skip at the begin of the file, such as titles.
  int64_t skip_rows = 0;
  /// Character that begins a comment, which ends with the line (default: none).
  std::optional<char> comment = std::nullopt;
  /// Decimal sign of numbers.
  char decimal = '.';
  /// Sign between groups of digits, as in "1,234,567" (default: none).
  std::optional<char> thousands = std::nullopt;
  /// Whether blanks after a delimiter are skipped, as before the quotes in `1, "x, y"`.
  bool skip_initial_space = false;
  /// Whether a row may have fewer fields than the first: the rest of it is missing. Otherwise it is
  /// an error.
  bool short_rows = false;
  /// Encoding of the file: "utf-8", "latin-1", "cp1252" (Windows) or "utf-16" (little-endian
  /// without a byte order mark).
  std::string encoding = "utf-8";
};

namespace datasets {

/// Reads a CSV file (RFC 4180) on all cores, decompressed if it is a gzip, bzip2, xz or Zstandard
/// file, or a zip archive of one file. Rows end in LF, CRLF or CR; empty ones are skipped. A column
/// is int64, float64, bool (true, True, TRUE) or text, the first of these that fits all its values;
/// integers of which int64 lacks one are text. A numeric or bool column with missing values is
/// float64 with NaN for these (a warning on stderr says if that rounds an integer); missing texts
/// are empty. describe() shows what was inferred.
///
///     Table table = datasets::read_csv("heart.csv", {.dtypes = {{"zip", "text"}}});
///     std::puts(datasets::describe(table).c_str());
///
/// Throws FileError naming the file, the row (from 0, as in the table), the line and the column if
/// a row or value does not fit the others, or the text is not of the encoding; ConfigError for an
/// invalid option or an unknown column.
Table read_csv(const std::string& path, const CsvOptions& options = {});

/// Returns one line with the number of rows and the dtype of each column, and its shape if a row
/// has more than one number: `303 rows: age int64, thal text, image uint8 (28, 28)`.
std::string describe(const Table& table);

}  // namespace datasets
}  // namespace tessera
