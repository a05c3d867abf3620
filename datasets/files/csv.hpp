#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/datasets/files/csv_column.hpp>

namespace tessera::detail {

/// The options of read_csv_file().
struct CsvReadOptions {
  char delimiter = ',';  ///< the character between two fields
  /// Whether the first row holds the column names.
  bool header = true;
  /// Names of all columns (default: those in the header, or "0", "1" and so on).
  std::vector<std::string> names = {};
  /// Columns to keep, in any order (default: all).
  std::vector<std::string> columns = {};
  /// Kinds of columns by name; others are inferred.
  std::map<std::string, CsvKind> kinds = {};
  /// Texts that mean a missing value, besides an empty field.
  std::vector<std::string> missing = {};
  /// Number of rows to read, from the first on (default: all).
  std::optional<int64_t> rows = std::nullopt;
  /// Bytes that are read and parsed at a time.
  uint64_t block_bytes = uint64_t{8} << 20;
  int64_t threads = 0;  ///< parsing threads (default 0: one per core, at most 8)
};

struct CsvFile {
  int64_t rows = 0;
  std::vector<CsvColumn> columns;
};

/// Reads a CSV file (RFC 4180), decompressed if its name ends in .gz. A field may be in double
/// quotes, inside which a quote is doubled; rows end in \n or \r\n; empty rows are skipped. A
/// numeric or bool (true, True, TRUE) column with missing values is float64, and so is a column
/// without any value. Throws FileError naming the file, the row (from 0, as in the result), the
/// line and the column for a row with another number of fields than the first, a value that is not
/// of its column's kind, an unterminated quote, a zero byte, and too many columns or too long a
/// row; ConfigError that suggests the nearest name for an unknown column.
CsvFile read_csv_file(const std::string& path, const CsvReadOptions& options = {});

}  // namespace tessera::detail
