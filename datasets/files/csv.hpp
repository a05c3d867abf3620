#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/datasets/files/csv_column.hpp>
#include <tessera/datasets/files/csv_dialect.hpp>

namespace tessera::detail {

/// The options of read_csv_file().
struct CsvReadOptions {
  CsvDialectOptions dialect = {};  ///< separators of fields and rows
  std::string encoding = "utf-8";  ///< "utf-8", "latin-1", "cp1252" or "utf-16"
  int64_t skip_rows = 0;           ///< lines to skip at the begin of the file
  /// Whether the first row holds the column names.
  bool header = true;
  /// Names of all columns (default: those in the header, or "0", "1" and so on).
  std::vector<std::string> names = {};
  /// Columns to keep, in any order (default: all).
  std::vector<std::string> columns = {};
  /// Kinds of columns by name; others are inferred.
  std::map<std::string, CsvKind> kinds = {};
  /// How values are written; an empty field, NA, NaN and similar are always missing.
  CsvValueFormat values = {};
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

/// Reads a CSV file (RFC 4180), decompressed as by PackedFile. A field may be in double quotes,
/// inside which a quote is doubled; rows end in \n, \r\n or \r; rows that are empty or hold only
/// blanks are skipped. A numeric or bool (true, True, TRUE) column with missing values is float64,
/// with a warning on stderr if that changes an integer, and so is a column without any value. A
/// column of integers of which int64 lacks one is text. Throws FileError naming the file, the row
/// (from 0, as in the result), the line and the column for a row with another number of fields than
/// the first, a value that is not of its column's kind, an unterminated quote, a zero byte, bytes
/// that are not of the encoding, and too many columns or too long a row; ConfigError that suggests
/// the nearest name for an unknown column or encoding.
CsvFile read_csv_file(const std::string& path, const CsvReadOptions& options = {});

}  // namespace tessera::detail
