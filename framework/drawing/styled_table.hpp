#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::detail {

/// The style of a piece of text in a terminal.
enum class TextStyle : uint8_t { plain, bold, number, symbol, none, yes, no };

/// Text of several styles; each character takes one column.
class StyledText {
 public:
  StyledText() = default;
  /// `text` is UTF-8. Control characters become blanks.
  explicit StyledText(const std::string& text, TextStyle style = TextStyle::plain);
  StyledText& add(const std::string& text, TextStyle style = TextStyle::plain);
  StyledText& add(const StyledText& text);
  int64_t size() const { return static_cast<int64_t>(cells_.size()); }
  /// Returns lines of at most `width` columns, broken between words; a longer word ends in "…".
  std::vector<StyledText> wrapped(int64_t width) const;
  /// Pads to `width` columns; `align` is -1 left, 0 centre, 1 right.
  StyledText aligned(int64_t width, int align) const;
  /// Returns the text as UTF-8, with the terminal's control sequences if `color`.
  std::string to_string(bool color) const;

 private:
  struct Cell {
    char32_t character;
    TextStyle style;
  };
  StyledText part(size_t begin, size_t end) const;

  std::vector<Cell> cells_;
};

struct TableColumn {
  std::string title;
  int align = -1;
  int64_t width = 0;  ///< columns of the text, without padding
};

/// Draws a table with a heavy header and a line between rows, as the library Rich does for Keras.
std::string draw_table(const std::vector<TableColumn>& columns,
                       const std::vector<std::vector<StyledText>>& rows, bool color);

/// Draws rows of texts as a table whose columns are as wide as their longest text.
std::string draw_text_table(std::vector<TableColumn> columns,
                            const std::vector<std::vector<std::string>>& rows);

/// Formats a number of bytes for people: "397.54 KB".
std::string readable_bytes(double bytes);

}  // namespace tessera::detail
