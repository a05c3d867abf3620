#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::detail {

/// A rectangle cut into rows and columns, each cell with a label.
struct TextGrid {
  /// Where the cuts lie, ascending from 0: one number more than there are rows.
  std::vector<int64_t> row_cuts;
  std::vector<int64_t> column_cuts;
  /// Whether the numbers of the cuts are written along the edges.
  bool show_rows = true;
  bool show_columns = true;
  /// Row by row; ASCII, may be broken after "," and "+".
  std::vector<std::vector<std::string>> labels;
};

/// The grid in box drawing characters, cells in proportion; nothing where the labels do not fit
/// into `max_columns` columns and `max_lines` lines.
std::optional<std::string> draw_grid(const TextGrid& grid, int64_t max_columns, int64_t max_lines);

/// Lines of at most `width` characters, broken after "," and "+"; longer only where one part is.
std::vector<std::string> break_list(const std::string& text, size_t width);

}  // namespace tessera::detail
