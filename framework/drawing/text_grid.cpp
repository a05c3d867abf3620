#include <tessera/framework/drawing/text_grid.hpp>

#include <algorithm>
#include <cmath>

#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

/// Returns the character positions of the boundaries, to scale, on a line of `length` characters.
std::vector<int64_t> positions(const std::vector<int64_t>& bounds, int64_t length) {
  std::vector<int64_t> at;
  for (const int64_t bound : bounds) {
    const double fraction = static_cast<double>(bound) / static_cast<double>(bounds.back());
    at.push_back(std::llround(fraction * static_cast<double>(length)));
  }
  return at;
}

/// Whether each cell between neighbouring positions has the characters that it needs.
bool fits(const std::vector<int64_t>& at, const std::vector<int64_t>& needs) {
  for (size_t i = 0; i < needs.size(); ++i) {
    if (at[i + 1] - at[i] - 1 < needs[i]) return false;
  }
  return true;
}

bool are_equal(const std::vector<int64_t>& bounds) {
  for (size_t i = 1; i < bounds.size(); ++i) {
    if (bounds[i] - bounds[i - 1] != bounds[1]) return false;
  }
  return true;
}

/// Returns the boundaries' positions for the shortest length in [length, limit] at which all labels
/// fit; nothing if there is none. Equal cells are drawn with equal size.
std::optional<std::vector<int64_t>> fit_positions(const std::vector<int64_t>& bounds,
                                                  const std::vector<int64_t>& needs, int64_t length,
                                                  int64_t limit) {
  const int64_t step = are_equal(bounds) ? static_cast<int64_t>(needs.size()) : 1;
  for (length = (length + step - 1) / step * step; length <= limit; length += step) {
    const std::vector<int64_t> at = positions(bounds, length);
    if (fits(at, needs)) return at;
  }
  return std::nullopt;
}

int64_t width_of(const std::string& label, size_t limit) {
  size_t width = 0;
  for (const std::string& line : break_list(label, limit)) width = std::max(width, line.size());
  return static_cast<int64_t>(width);
}

/// Returns the width that each column needs: of its labels, broken at `limit` characters, and
/// `blanks` beside them.
std::vector<int64_t> column_needs(const TextGrid& grid, size_t limit, int64_t blanks) {
  std::vector<int64_t> needs(grid.column_bounds.size() - 1, 1);
  for (const auto& row : grid.labels) {
    for (size_t j = 0; j < row.size(); ++j) {
      needs[j] = std::max(needs[j], width_of(row[j], limit) + blanks);
    }
  }
  return needs;
}

/// Returns the columns' boundaries on a line of `length` to `limit` characters in which all labels
/// fit. Prefers broken labels to labels without blanks beside them.
std::optional<std::vector<int64_t>> column_positions(const TextGrid& grid, int64_t length,
                                                     int64_t limit) {
  for (const int64_t blanks : {2, 0}) {
    for (const size_t label_limit : {60, 30, 20, 12, 6, 1}) {
      const auto needs = column_needs(grid, label_limit, blanks);
      if (auto at = fit_positions(grid.column_bounds, needs, length, limit)) return at;
    }
  }
  return std::nullopt;
}

/// Returns the width for a label in a cell: without the lines, and without one blank on either side
/// if the cell is wide enough.
size_t label_width(const std::vector<int64_t>& columns, size_t column) {
  const int64_t width = columns[column + 1] - columns[column] - 1;
  return static_cast<size_t>(width > 6 ? width - 2 : width);
}

/// Returns the number of lines that each row's labels need in columns at these positions.
std::vector<int64_t> row_needs(const TextGrid& grid, const std::vector<int64_t>& columns) {
  std::vector<int64_t> needs(grid.row_bounds.size() - 1, 1);
  for (size_t i = 0; i < needs.size(); ++i) {
    for (size_t j = 0; j < grid.labels[i].size(); ++j) {
      const size_t lines = break_list(grid.labels[i][j], label_width(columns, j)).size();
      needs[i] = std::max(needs[i], static_cast<int64_t>(lines));
    }
  }
  return needs;
}

/// A grid of characters, each one code point.
class Canvas {
 public:
  Canvas(int64_t lines, int64_t columns)
      : cells_(static_cast<size_t>(lines), Line(static_cast<size_t>(columns), " ")) {}

  std::string& at(int64_t line, int64_t column) {
    return cells_[static_cast<size_t>(line)][static_cast<size_t>(column)];
  }

  void put(int64_t line, int64_t column, const std::string& ascii) {
    for (const char c : ascii) at(line, column++) = std::string(1, c);
  }

  std::string text() const {
    std::string out;
    for (const Line& line : cells_) {
      const std::string content = join(line, "");
      out += content.substr(0, content.find_last_not_of(' ') + 1) + "\n";
    }
    return out;
  }

 private:
  using Line = std::vector<std::string>;
  std::vector<Line> cells_;
};

/// Returns the box drawing character where lines meet: `row` and `column` are 0 at the first edge,
/// 2 at the last, 1 in between.
const char* joint(int row, int column) {
  static constexpr const char* signs[3][3] = {{"┌", "┬", "┐"}, {"├", "┼", "┤"}, {"└", "┴", "┘"}};
  return signs[row][column];
}

int edge_kind(size_t index, size_t last) { return index == 0 ? 0 : index == last ? 2 : 1; }

void draw_lines(Canvas& canvas, const std::vector<int64_t>& rows,
                const std::vector<int64_t>& columns) {
  for (const int64_t line : rows) {
    for (int64_t c = columns.front(); c <= columns.back(); ++c) canvas.at(line, c) = "─";
  }
  for (const int64_t column : columns) {
    for (int64_t l = rows.front(); l <= rows.back(); ++l) canvas.at(l, column) = "│";
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < columns.size(); ++j) {
      canvas.at(rows[i], columns[j]) =
          joint(edge_kind(i, rows.size() - 1), edge_kind(j, columns.size() - 1));
    }
  }
}

void draw_labels(Canvas& canvas, const TextGrid& grid, const std::vector<int64_t>& rows,
                 const std::vector<int64_t>& columns) {
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    for (size_t j = 0; j + 1 < columns.size(); ++j) {
      const int64_t width = columns[j + 1] - columns[j] - 1;
      const auto lines = break_list(grid.labels[i][j], label_width(columns, j));
      const auto count = static_cast<int64_t>(lines.size());
      int64_t line = rows[i] + 1 + (rows[i + 1] - rows[i] - 1 - count) / 2;
      for (const std::string& text : lines) {
        const int64_t blank = width - static_cast<int64_t>(text.size());
        canvas.put(line++, columns[j] + 1 + blank / 2, text);
      }
    }
  }
}

/// Writes the columns' boundaries above their lines; omits those that would touch another.
void draw_column_bounds(Canvas& canvas, const TextGrid& grid, const std::vector<int64_t>& columns) {
  int64_t free = 0;
  for (size_t j = 0; j < columns.size(); ++j) {
    const std::string text = std::to_string(grid.column_bounds[j]);
    const int64_t end = columns[j] + static_cast<int64_t>(text.size());
    const bool is_last = j + 1 == columns.size();
    if (columns[j] < free || (!is_last && end >= columns.back())) continue;
    canvas.put(0, columns[j], text);
    free = end + 1;
  }
}

}  // namespace

std::vector<std::string> break_list(const std::string& text, size_t width) {
  std::vector<std::string> lines(1);
  for (size_t at = 0; at < text.size();) {
    if (text[at] == ' ' && lines.back().empty()) ++at;
    const size_t end = std::min(text.find_first_of(",+", at), text.size() - 1) + 1;
    if (!lines.back().empty() && lines.back().size() + end - at > width) {
      lines.emplace_back();
    } else {
      lines.back() += text.substr(at, end - at);
      at = end;
    }
  }
  return lines;
}

std::optional<std::string> draw_grid(const TextGrid& grid, int64_t max_columns, int64_t max_lines) {
  const int64_t left =
      grid.show_rows ? static_cast<int64_t>(std::to_string(grid.row_bounds.back()).size()) + 1 : 0;
  // The last boundary's number may extend beyond the edge.
  const int64_t right = grid.show_columns
                            ? static_cast<int64_t>(std::to_string(grid.column_bounds.back()).size())
                            : 1;
  const int64_t widest = max_columns - left - right;
  // A character is about twice as high as wide.
  const double height = static_cast<double>(grid.row_bounds.back());
  const double ratio =
      grid.show_rows ? height / static_cast<double>(grid.column_bounds.back()) : 0.1;
  const int64_t preferred_columns = std::llround(std::clamp(16 / ratio, 12.0, 40.0));
  const int64_t preferred_lines = std::llround(std::clamp(16 * ratio / 2, 2.0, 8.0));
  auto columns = column_positions(grid, preferred_columns, widest);
  if (!columns) return std::nullopt;
  auto rows =
      fit_positions(grid.row_bounds, row_needs(grid, *columns), preferred_lines, max_lines - 2);
  if (!rows) return std::nullopt;
  for (int64_t& column : *columns) column += left;
  if (grid.show_columns) {
    for (int64_t& row : *rows) ++row;
  }
  Canvas canvas(rows->back() + 1, columns->back() + right);
  draw_lines(canvas, *rows, *columns);
  draw_labels(canvas, grid, *rows, *columns);
  if (grid.show_columns) draw_column_bounds(canvas, grid, *columns);
  for (size_t i = 0; grid.show_rows && i < rows->size(); ++i) {
    const std::string text = std::to_string(grid.row_bounds[i]);
    canvas.put((*rows)[i], left - 1 - static_cast<int64_t>(text.size()), text);
  }
  return canvas.text();
}

}  // namespace tessera::detail
