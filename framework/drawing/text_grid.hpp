#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::detail {

/// A rectangle divided into rows and columns, each cell with a label.
struct TextGrid {
  /// Boundaries of the rows, ascending from 0; one more than there are rows.
  std::vector<int64_t> row_bounds;
  std::vector<int64_t> column_bounds;
  /// Whether the boundaries are written along the edges.
  bool show_rows = true;
  bool show_columns = true;
  /// Labels by row and column; ASCII, may be broken after "," and "+".
  std::vector<std::vector<std::string>> labels;
};

/// Draws the grid in box drawing characters, cells to scale; nothing if the labels do not fit into
/// `max_columns` columns and `max_lines` lines.
std::optional<std::string> draw_grid(const TextGrid& grid, int64_t max_columns, int64_t max_lines);

/// Breaks a text after "," and "+" into lines of at most `width` characters; a longer item keeps a
/// line of its own.
std::vector<std::string> break_list(const std::string& text, size_t width);

}  // namespace tessera::detail
