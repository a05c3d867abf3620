#pragma once

#include <string>
#include <vector>

namespace tessera::app {

/// A table of text in aligned columns, for a terminal.
class Table {
 public:
  /// `head` has the column names. The first `left` columns are left-aligned, the others
  /// right-aligned.
  explicit Table(std::vector<std::string> head, size_t left = 1);

  /// Adds a row; missing cells are empty.
  void add(std::vector<std::string> row);

  /// Returns a line for the head, a line of dashes and a line per row, without trailing spaces.
  std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  size_t left_;
};

/// Formats a number with a fixed count of decimals: fixed(2.5, 2) is "2.50".
std::string fixed(double value, int decimals);

}  // namespace tessera::app
