#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/datasets/files/csv_dialect.hpp>

namespace tessera::detail {

/// Kind of a column's values, from the narrowest on: a column gets the first kind that fits all its
/// values. Missing values have no kind.
enum class CsvKind { none, boolean, int64, float64, text };

/// Returns "bool", "int64", "float64" or "text".
std::string csv_kind_name(CsvKind kind);

/// Returns the kind of a column that holds values of both kinds.
CsvKind joined_kind(CsvKind a, CsvKind b);

/// Consecutive rows of a column, read by one thread.
struct CsvColumnChunk {
  CsvKind kind = CsvKind::none;
  bool has_missing = false;
  bool values_dropped = false;  ///< whether values before the first text were dropped
  bool integers_only = true;    ///< whether all numbers are written as integers
  bool beyond_int64 = false;    ///< whether an integer is out of int64's range
  bool inexact = false;         ///< whether an integer became another one as a double
  int64_t rows = 0;
  /// One number per row: the bits of a double for float64, otherwise an int64 (2 for a missing
  /// bool). Empty if no row has a value, and for texts.
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;

  /// Returns whether an integer is another one as a double.
  bool has_inexact() const;
};

/// A column of a CSV file.
struct CsvColumn {
  std::string name;
  CsvKind kind = CsvKind::none;
  std::vector<CsvColumnChunk> chunks;

  /// Moves all rows of an int64 or bool column to `out`, which must have room for them, and frees
  /// the chunks.
  void take(int64_t* out);
  /// Moves all rows of a float64 column to `out`, missing ones as NaN, and frees the chunks.
  void take(double* out);
  /// Moves out all rows of a text column, missing ones as empty texts.
  std::vector<std::string> take_texts();
};

/// Properties of a column that are known before its rows are read.
struct CsvPlan {
  bool selected = true;
  bool kind_required = false;  ///< whether other kinds than `kind` are errors
  CsvKind kind = CsvKind::none;
};

/// How values are written.
struct CsvValueFormat {
  std::set<std::string, std::less<>> missing = {};  ///< texts that mean a missing value
  char decimal = '.';                               ///< the decimal sign
  std::optional<char> thousands = std::nullopt;     ///< the sign between groups of digits
};

/// Appends values to a chunk of a column.
class CsvColumnBuilder {
 public:
  /// `plan` and `format` must outlive the builder.
  CsvColumnBuilder(const CsvPlan& plan, const CsvValueFormat& format);

  /// Fast path: if the column is numeric and the field is a plain number, appends it and returns
  /// the end of the field; otherwise returns null.
  const char* add_number(const char* begin, const char* end, const CsvDialect& dialect);
  /// Appends a field; returns false if its value does not fit the required kind.
  bool add(std::string_view text);

  CsvColumnChunk chunk;

 private:
  void add_bits(int64_t value);
  bool add_missing();
  void note_integer(std::string_view text);
  void widen(CsvKind kind);

  const CsvPlan& plan_;
  const CsvValueFormat& format_;
  bool plain_;  ///< whether numbers are written as in C
};

}  // namespace tessera::detail
