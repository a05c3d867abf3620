#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace tessera::detail {

/// The characters that separate fields and rows.
struct CsvDialectOptions {
  char delimiter = ',';  ///< a blank: runs of blanks and tabs
  /// The character that begins a comment, which ends with the line (default: none).
  std::optional<char> comment = std::nullopt;
  bool skip_initial_space = false;  ///< whether blanks before a field are skipped
  bool short_rows = false;          ///< whether missing values fill up a row with too few fields
};

/// A dialect of CSV. Positions are in a text of complete rows, which end in \n, \r\n or \r.
class CsvDialect {
 public:
  explicit CsvDialect(const CsvDialectOptions& options);

  char delimiter() const { return options_.delimiter; }
  bool short_rows() const { return options_.short_rows; }
  /// Whether a character ends an unquoted field: a delimiter or the end of the row.
  bool ends_field(char c) const { return ends_field_[static_cast<uint8_t>(c)]; }
  /// Whether the fields of a row end before a character: a line end or a comment.
  bool ends_row(char c) const {
    return c == '\n' || c == '\r' || (options_.comment && c == *options_.comment);
  }
  /// Whether a character comes before a field and is not of it.
  bool is_skipped(char c) const {
    return (skips_blanks_ && c == ' ') || (runs_of_blanks_ && c == '\t');
  }
  /// Returns the first field of the row at `at`.
  const char* first_field(const char* at) const;
  /// Advances from the end of a field to the next one; returns false at the end of the row.
  bool next_field(const char*& at) const;
  /// Returns the begin of the row after the one whose fields end at `at`.
  const char* next_row(const char* at) const;
  /// Returns the begin of the row after an empty one, of blanks or a comment; null for another row.
  const char* empty_row_end(const char* at) const;

 private:
  CsvDialectOptions options_;
  bool runs_of_blanks_;
  bool skips_blanks_;
  std::array<bool, 256> ends_field_{};
};

}  // namespace tessera::detail
