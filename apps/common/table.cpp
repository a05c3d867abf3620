#include "apps/common/table.hpp"

#include <algorithm>
#include <cstdio>

namespace tessera::app {

Table::Table(std::vector<std::string> head, size_t left) : left_(left) {
  rows_.push_back(std::move(head));
}

void Table::add(std::vector<std::string> row) {
  row.resize(rows_[0].size());
  rows_.push_back(std::move(row));
}

std::string Table::to_string() const {
  std::vector<size_t> widths(rows_[0].size());
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      const std::string space(widths[c] - cells[c].size(), ' ');
      line += (c ? "  " : "") + (c < left_ ? cells[c] + space : space + cells[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  for (size_t r = 0; r < rows_.size(); ++r) {
    add_line(rows_[r]);
    if (r > 0) continue;
    std::vector<std::string> dashes;
    for (size_t width : widths) dashes.emplace_back(width, '-');
    add_line(dashes);
  }
  return text;
}

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

}  // namespace tessera::app
