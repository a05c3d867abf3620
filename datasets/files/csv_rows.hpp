#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/datasets/files/csv_column.hpp>
#include <tessera/datasets/files/csv_dialect.hpp>

namespace tessera::detail {

/// A field of a row.
struct CsvField {
  std::string_view text;  ///< the value without quotes; in `unquoted` if quotes were doubled
  const char* end;        ///< the delimiter or end of row after the field
};

/// Returns the field that begins at `begin`, in a text of complete rows.
CsvField csv_field_at(const char* begin, const CsvDialect& dialect, std::string& unquoted);

/// Returns row ends that split the complete rows of a text into about `chunks` chunks of equal
/// size; the last one is the end of the last complete row.
std::vector<size_t> csv_row_ends(std::string_view text, const CsvDialect& dialect, size_t chunks);

/// An error at a byte, row and field of a text, the first two counted from its beginning.
struct CsvError {
  size_t offset;
  int64_t row;
  size_t field;
  std::string expected, received, fix;
};

/// The rows that one thread parses.
struct CsvChunk {
  std::string_view text;  ///< complete rows, the last one with its line end
  int64_t max_rows;
  int64_t rows = 0;
  std::vector<CsvColumnBuilder> builders = {};
  std::optional<CsvError> error = std::nullopt;
};

/// Parses the rows of a chunk, up to the first error.
void add_csv_rows(CsvChunk& chunk, const CsvDialect& dialect, const std::vector<CsvPlan>& plans);

}  // namespace tessera::detail
