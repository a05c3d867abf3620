#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/datasets/files/csv_column.hpp>

namespace tessera::detail {

/// How a CSV file is read.
struct CsvForm {
  char delimiter = ',';
  /// Whether the first row has the names of the columns.
  bool header = true;
  /// Names of all columns in place of those in the header; empty: as they are there, or "0", "1".
  std::vector<std::string> names = {};
  /// The columns that are kept, in any order; empty: all.
  std::vector<std::string> columns = {};
  /// Kinds of columns by their names; those of the others are inferred.
  std::map<std::string, CsvKind> kinds = {};
  /// What stands for a missing value, beside an empty field.
  std::vector<std::string> missing = {};
  /// How many of the first rows; absent: all.
  std::optional<int64_t> rows = std::nullopt;
  /// Bytes that are read at a time, and how many threads take them apart.
  uint64_t block_bytes = uint64_t{8} << 20;
  int64_t threads = 0;  ///< 0: as many as there are cores, at most 8
};

struct CsvFile {
  int64_t rows = 0;
  std::vector<CsvColumn> columns;
};

/// Reads a file of separated values (RFC 4180), unpacked on the way if its name ends in .gz. A
/// field may be in double quotes, in which a quote is doubled; rows end in \n or \r\n, empty ones
/// are passed over. A column of numbers or truth values (true, True, TRUE) with missing ones is
/// float64, and so is one without a value. Throws FileError naming the file, the row (from 0, as
/// it would be in the result), the line and the column for a row of another number of fields than
/// the first, a value that is not of its column's kind, a quote without end, a zero byte, and more
/// columns or a longer row than are reasonable; ConfigError naming the nearest for a column that is
/// not there.
CsvFile read_csv_file(const std::string& path, const CsvForm& form = {});

}  // namespace tessera::detail
