#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/datasets/files/csv_column.hpp>

namespace tessera::detail {

/// A field as it stands in a row.
struct CsvField {
  std::string_view text;  ///< without quotes; in `unquoted` where some were doubled
  const char* end;        ///< at the delimiter or the end of the row
};

/// The field that begins here, in rows that are whole.
CsvField csv_field_at(const char* begin, char delimiter, std::string& unquoted);

/// Where whole rows end: the last end in the text, and in between those of about equal parts.
std::vector<size_t> csv_row_ends(std::string_view text, char delimiter, size_t parts);

/// What is wrong, and where: a byte of the text and a row from its beginning.
struct CsvFault {
  size_t offset;
  int64_t row;
  size_t field;
  std::string expected, received, fix;
};

/// Rows that one thread takes apart.
struct CsvShare {
  std::string_view text;  ///< of whole rows, with a line's end behind the last
  int64_t most_rows;
  int64_t rows = 0;
  std::vector<CsvColumnBuilder> builders = {};
  std::optional<CsvFault> fault = std::nullopt;
};

/// Takes the rows of a share apart, up to the first that is wrong.
void add_csv_rows(CsvShare& share, char delimiter, const std::vector<CsvPlan>& plans);

}  // namespace tessera::detail
