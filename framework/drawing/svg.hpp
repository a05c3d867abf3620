#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tessera::detail {

/// A place in a picture: pixels from its upper left corner, y grows downwards.
struct Point {
  double x = 0;
  double y = 0;
};

/// A picture in Scalable Vector Graphics 1.1 with a background of its own, so that it reads alike
/// in light and dark viewers. `style` is XML attributes, written as they are: `fill="none"`.
class Svg {
 public:
  // Colours that the pictures share.
  static constexpr const char* ink = "#1f2328";
  static constexpr const char* muted = "#59636e";
  static constexpr const char* frame = "#c4cbd3";
  static constexpr const char* grid = "#e7eaee";

  /// An empty picture; `title` is what a screen reader says.
  Svg(double width, double height, const std::string& title);

  void rect(Point corner, double width, double height, const std::string& style);
  void line(Point from, Point to, const std::string& style);
  /// Straight lines through the points, in order.
  void polyline(std::span<const Point> points, const std::string& style);
  void path(const std::string& commands, const std::string& style);
  void circle(Point center, double radius, const std::string& style);
  /// One line of text, which starts (by default) at `at` on its base line; any bytes may occur.
  void text(Point at, const std::string& text, const std::string& style);

  /// The whole document.
  std::string document() const;

 private:
  std::string body_;
};

/// A finite number with at most two decimals, "12.5"; 0 for one that is not finite.
std::string svg_number(double value);

/// Text for the content of XML or an attribute: on one line, with &, <, > and quotes escaped.
std::string xml_text(std::string_view text);

/// About how many pixels wide a sans-serif text of `size` pixels is; rather more than less.
double text_width(std::string_view text, double size, bool bold = false);

/// The text, or its beginning and "…" where it would be wider than `width` pixels.
std::string fit_text(const std::string& text, double size, double width, bool bold = false);

}  // namespace tessera::detail
