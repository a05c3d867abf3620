#include <tessera/framework/drawing/styled_table.hpp>

#include <algorithm>

#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

const char* begin_style(TextStyle style) {
  switch (style) {
    case TextStyle::plain:
      return "";
    case TextStyle::bold:
      return "\x1b[1m";
    case TextStyle::number:
      return "\x1b[38;5;34m";
    case TextStyle::symbol:
      return "\x1b[38;5;33m";
    case TextStyle::none:
      return "\x1b[38;5;45m";
    case TextStyle::yes:
      return "\x1b[1;38;5;34m";
    case TextStyle::no:
      return "\x1b[1;91m";
  }
  return "";
}

/// Decodes UTF-8 to code points, with control characters as blanks. A byte that begins no code
/// point stands for itself.
std::u32string code_points(const std::string& text) {
  std::u32string points;
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    char32_t point = length == 1 ? byte : byte & (0x7F >> length);
    for (size_t j = 1; j < length && i + j < text.size(); ++j) {
      point = point << 6 | (static_cast<unsigned char>(text[i + j]) & 0x3F);
    }
    points += point < 0x20 ? U' ' : point;
    i += length;
  }
  return points;
}

std::string repeated(const char* piece, int64_t times) {
  std::string text;
  for (int64_t i = 0; i < times; ++i) text += piece;
  return text;
}

/// Draws a horizontal line such as "┏━━┳━━┓".
std::string rule(const std::vector<int64_t>& widths, const char* left, const char* line,
                 const char* cross, const char* right) {
  std::string text = left;
  for (size_t i = 0; i < widths.size(); ++i) {
    text += (i ? cross : "") + repeated(line, widths[i] + 2);
  }
  return text + right + "\n";
}

/// Draws a row of one or more lines; a header's blanks are bold too.
std::string draw_row(const std::vector<StyledText>& row, const std::vector<TableColumn>& columns,
                     const std::vector<int64_t>& widths, const char* bar, TextStyle padding,
                     bool color) {
  std::vector<std::vector<StyledText>> lines;
  size_t height = 1;
  for (size_t i = 0; i < row.size(); ++i) {
    lines.push_back(row[i].wrapped(widths[i]));
    height = std::max(height, lines.back().size());
  }
  const std::string pad = StyledText(" ", padding).to_string(color);
  std::string text;
  for (size_t y = 0; y < height; ++y) {
    text += bar;
    for (size_t i = 0; i < row.size(); ++i) {
      if (y < lines[i].size()) {
        StyledText cell = lines[i][y].aligned(widths[i], columns[i].align);
        if (padding == TextStyle::bold) cell = StyledText(cell.to_string(false), padding);
        text += pad + cell.to_string(color) + pad + bar;
      } else {
        const std::string blank(static_cast<size_t>(widths[i] + 2), ' ');
        text += StyledText(blank, padding).to_string(color) + bar;
      }
    }
    text += "\n";
  }
  return text;
}

}  // namespace

StyledText::StyledText(const std::string& text, TextStyle style) { add(text, style); }

StyledText& StyledText::add(const std::string& text, TextStyle style) {
  for (char32_t point : code_points(text)) cells_.push_back({point, style});
  return *this;
}

StyledText& StyledText::add(const StyledText& text) {
  cells_.insert(cells_.end(), text.cells_.begin(), text.cells_.end());
  return *this;
}

StyledText StyledText::part(size_t begin, size_t end) const {
  StyledText text;
  text.cells_.assign(cells_.begin() + static_cast<std::ptrdiff_t>(begin),
                     cells_.begin() + static_cast<std::ptrdiff_t>(end));
  return text;
}

std::vector<StyledText> StyledText::wrapped(int64_t width) const {
  const auto blank = [&](size_t i) { return cells_[i].character == U' '; };
  std::vector<size_t> breaks = {0};
  int64_t used = 0;
  for (size_t i = 0; i < cells_.size();) {
    size_t word = i;
    while (word < cells_.size() && blank(word)) ++word;
    while (word < cells_.size() && !blank(word)) ++word;
    size_t end = word;
    while (end < cells_.size() && blank(end)) ++end;
    const int64_t length = static_cast<int64_t>(word - i), padded = static_cast<int64_t>(end - i);
    if (width - used >= length) {
      used += padded;
    } else {
      if (used > 0 && i > 0) breaks.push_back(i);
      used = padded;
    }
    i = end;
  }
  breaks.push_back(cells_.size());
  std::vector<StyledText> lines;
  for (size_t i = 0; i + 1 < breaks.size(); ++i) {
    size_t end = breaks[i + 1];
    const auto limit = breaks[i] + static_cast<size_t>(width);
    while (end > limit && blank(end - 1)) --end;
    StyledText line = part(breaks[i], std::min(end, limit));
    if (end > limit && !line.cells_.empty()) line.cells_.back().character = U'…';
    lines.push_back(std::move(line));
  }
  return lines;
}

StyledText StyledText::aligned(int64_t width, int align) const {
  size_t end = cells_.size();
  while (align >= 0 && end > 0 && cells_[end - 1].character == U' ') --end;
  const int64_t room = std::max<int64_t>(0, width - static_cast<int64_t>(end));
  const int64_t before = align < 0 ? 0 : align == 0 ? room / 2 : room;
  StyledText text(std::string(static_cast<size_t>(before), ' '));
  return text.add(part(0, end)).add(std::string(static_cast<size_t>(room - before), ' '));
}

std::string StyledText::to_string(bool color) const {
  std::string text;
  TextStyle style = TextStyle::plain;
  for (const Cell& cell : cells_) {
    if (color && cell.style != style) {
      if (style != TextStyle::plain) text += "\x1b[0m";
      text += begin_style(cell.style);
      style = cell.style;
    }
    append_utf8(text, cell.character);
  }
  if (style != TextStyle::plain) text += "\x1b[0m";
  return text;
}

std::string draw_table(const std::vector<TableColumn>& columns,
                       const std::vector<std::vector<StyledText>>& rows, bool color) {
  std::vector<int64_t> widths;
  for (const TableColumn& column : columns) widths.push_back(column.width);
  std::vector<StyledText> head;
  for (const TableColumn& column : columns) head.emplace_back(column.title, TextStyle::bold);
  std::string text = rule(widths, "┏", "━", "┳", "┓");
  text += draw_row(head, columns, widths, "┃", TextStyle::bold, color);
  text += rule(widths, "┡", "━", "╇", "┩");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i) text += rule(widths, "├", "─", "┼", "┤");
    text += draw_row(rows[i], columns, widths, "│", TextStyle::plain, color);
  }
  return text + rule(widths, "└", "─", "┴", "┘");
}

std::string draw_text_table(std::vector<TableColumn> columns,
                            const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<StyledText>> cells;
  for (TableColumn& column : columns) column.width = int64_t(column.title.size());
  for (const auto& row : rows) {
    cells.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      cells.back().emplace_back(row[i]);
      columns[i].width = std::max(columns[i].width, cells.back().back().size());
    }
  }
  return draw_table(columns, cells, false);
}

std::string readable_bytes(double bytes) {
  const char* const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit < 5) {
    bytes /= 1024;
    ++unit;
  }
  char text[40];
  std::snprintf(text, sizeof text, "%.2f %s", bytes, units[unit]);
  return text;
}

}  // namespace tessera::detail
