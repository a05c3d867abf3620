#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// What the values of a column are, from the narrowest on: a column is of the first kind that has
/// all of its values. Missing values have no kind.
enum class CsvKind { none, boolean, int64, float64, text };

/// "bool", "int64", "float64", "text".
std::string csv_kind_name(CsvKind kind);

/// The kind of a column that holds values of both.
CsvKind joined_kind(CsvKind a, CsvKind b);

/// Some rows of a column, as one thread read them.
struct CsvPart {
  CsvKind kind = CsvKind::none;
  bool has_missing = false;
  bool is_lost = false;  ///< whether values before the first text were dropped
  int64_t rows = 0;
  /// The bits of a number in each row: of a double for float64, else an int64, which is 2 for a
  /// bool that is missing. Empty where no row has a value, and for texts.
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
};

/// A column of a CSV file.
struct CsvColumn {
  std::string name;
  CsvKind kind = CsvKind::none;
  std::vector<CsvPart> parts;

  /// All rows, of an int64 or bool column or of a float64 one, into `out`, which has room for them;
  /// missing ones are NaN. Gives the memory of the parts back on the way.
  void take(int64_t* out);
  void take(double* out);
  /// All rows of a column of texts; missing ones are empty.
  std::vector<std::string> take_texts();
};

/// What a column is to be, as far as it is known before its rows are read.
struct CsvPlan {
  bool kept = true;
  bool given = false;  ///< whether the kind is the only one that will do
  CsvKind kind = CsvKind::none;
};

/// What stands for missing values.
using CsvMissing = std::set<std::string, std::less<>>;

/// Puts values behind the others in a part of a column.
class CsvColumnBuilder {
 public:
  /// Both must outlive it.
  CsvColumnBuilder(const CsvPlan& plan, const CsvMissing& missing);

  /// Takes the number that the text begins with, where the column is one of numbers and a field
  /// ends behind it: most fields are no more than that. The end of the field, or null.
  const char* add_number(const char* begin, const char* end, char delimiter);
  /// Takes a field; false for a value that the given kind does not have.
  bool add(std::string_view text);

  CsvPart part;

 private:
  void add_bits(int64_t value);
  bool add_missing();
  void widen(CsvKind kind);

  const CsvPlan& plan_;
  const CsvMissing& missing_;
};

}  // namespace tessera::detail
