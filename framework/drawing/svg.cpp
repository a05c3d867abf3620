#include <tessera/framework/drawing/svg.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

// Advance widths of Helvetica's characters 0x20 to 0x7E, in thousandths of the font size.
constexpr int16_t advances[] = {
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333,  278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,  611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,  556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,  500, 334, 260, 334, 584};
constexpr double default_advance = 0.8;
// Viewers without Helvetica or a similar font use wider ones.
constexpr double safety_factor = 1.06;

std::string attribute(const char* name, double value) {
  return str(' ', name, "=\"", svg_number(value), '"');
}

std::string element(const char* name, const std::string& attributes, const std::string& style) {
  return str('<', name, attributes, style.empty() ? "" : " ", style, "/>\n");
}

}  // namespace

std::string svg_number(double value) {
  const double rounded = std::round(value * 100) / 100;
  if (!std::isfinite(rounded) || rounded == 0) return "0";
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, rounded);
  return std::string(text, end.ptr);
}

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : one_line(text, text.size())) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  // U+FFFE and U+FFFF are valid UTF-8, but not allowed in XML.
  for (const char* none : {"\xef\xbf\xbe", "\xef\xbf\xbf"}) {
    for (size_t at = out.find(none); at != out.npos; at = out.find(none)) out.replace(at, 3, "?");
  }
  return out;
}

double text_width(std::string_view text, double size, bool bold) {
  double width = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::max<size_t>(utf8_length(text.substr(at)), 1);
    const auto code = static_cast<uint8_t>(text[at]);
    width += code >= 0x20 && code < 0x7F ? advances[code - 0x20] / 1000.0 : default_advance;
    at += length;
  }
  return width * size * safety_factor * (bold ? 1.08 : 1);
}

std::string fit_text(const std::string& text, double size, double width, bool bold) {
  if (text_width(text, size, bold) <= width) return text;
  std::string prefix;
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::max<size_t>(utf8_length(std::string_view(text).substr(at)), 1);
    const std::string longer = prefix + text.substr(at, length);
    if (text_width(longer + "…", size, bold) > width) break;
    prefix = longer;
    at += length;
  }
  return prefix + "…";
}

Svg::Svg(double width, double height, const std::string& title) {
  const std::string w = svg_number(width), h = svg_number(height);
  body_ = str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
              "<svg xmlns=\"http://www.w3.org/2000/svg\"", " width=\"", w, "\" height=\"", h,
              "\" viewBox=\"0 0 ", w, ' ', h,
              "\" font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" font-size=\"12\"",
              " fill=\"", ink, "\">\n<title>", xml_text(title), "</title>\n");
  rect({0, 0}, width, height, "fill=\"#ffffff\"");
}

void Svg::rect(Point corner, double width, double height, const std::string& style) {
  body_ += element("rect",
                   attribute("x", corner.x) + attribute("y", corner.y) + attribute("width", width) +
                       attribute("height", height),
                   style);
}

void Svg::line(Point from, Point to, const std::string& style) {
  body_ += element("line",
                   attribute("x1", from.x) + attribute("y1", from.y) + attribute("x2", to.x) +
                       attribute("y2", to.y),
                   style);
}

void Svg::polyline(std::span<const Point> points, const std::string& style) {
  std::string list;
  for (const Point& p : points) {
    list += str(list.empty() ? "" : " ", svg_number(p.x), ',', svg_number(p.y));
  }
  body_ += element("polyline", str(" points=\"", list, "\" fill=\"none\""), style);
}

void Svg::path(const std::string& commands, const std::string& style) {
  body_ += element("path", str(" d=\"", commands, '"'), style);
}

void Svg::circle(Point center, double radius, const std::string& style) {
  body_ += element("circle",
                   attribute("cx", center.x) + attribute("cy", center.y) + attribute("r", radius),
                   style);
}

void Svg::text(Point at, const std::string& text, const std::string& style) {
  body_ += str("<text", attribute("x", at.x), attribute("y", at.y), style.empty() ? "" : " ", style,
               '>', xml_text(text), "</text>\n");
}

std::string Svg::document() const { return body_ + "</svg>\n"; }

}  // namespace tessera::detail
