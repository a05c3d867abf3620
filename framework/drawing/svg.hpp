#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tessera::detail {

/// A point in a picture: pixels from its upper left corner, y grows downwards.
struct Point {
  double x = 0;
  double y = 0;
};

/// A picture in SVG 1.1 with its own background, so that it looks the same in light and dark
/// viewers. `style` is XML attributes, written unescaped: `fill="none"`.
class Svg {
 public:
  // Colours that the pictures share.
  static constexpr const char* ink = "#1f2328";
  static constexpr const char* muted = "#59636e";
  static constexpr const char* frame = "#c4cbd3";
  static constexpr const char* grid = "#e7eaee";

  /// Begins an empty picture; screen readers read `title` aloud.
  Svg(double width, double height, const std::string& title);

  void rect(Point corner, double width, double height, const std::string& style);
  void line(Point from, Point to, const std::string& style);
  /// Draws straight lines through the points, in order.
  void polyline(std::span<const Point> points, const std::string& style);
  void path(const std::string& commands, const std::string& style);
  void circle(Point center, double radius, const std::string& style);
  /// Draws one line of text of any bytes; its baseline starts (by default) at `at`.
  void text(Point at, const std::string& text, const std::string& style);

  /// Returns the complete document.
  std::string document() const;

 private:
  std::string body_;
};

/// Formats a number with at most two decimals ("12.5"); "0" if it is not finite.
std::string svg_number(double value);

/// Escapes &, <, > and quotes for XML content or an attribute, and joins lines to one.
std::string xml_text(std::string_view text);

/// Estimates the width in pixels of a sans-serif text of `size` pixels; rather too wide.
double text_width(std::string_view text, double size, bool bold = false);

/// Returns the text, cut off with "…" if it would be wider than `width` pixels.
std::string fit_text(const std::string& text, double size, double width, bool bold = false);

}  // namespace tessera::detail
