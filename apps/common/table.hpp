#pragma once

#include <string>
#include <vector>

namespace tessera::app {

/// Rows of text in aligned columns, for a terminal.
class Table {
 public:
  /// The head names the columns. The first `left` of them are aligned to the left, the others to
  /// the right.
  explicit Table(std::vector<std::string> head, size_t left = 1);

  /// Cells that the row lacks are empty.
  void add(std::vector<std::string> row);

  /// A line for the head, a line of dashes and a line for each row, without trailing spaces.
  std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  size_t left_;
};

/// A number with a fixed count of decimals: fixed(2.5, 2) is "2.50".
std::string fixed(double value, int decimals);

}  // namespace tessera::app
