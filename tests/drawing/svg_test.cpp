#include <tessera/framework/drawing/svg.hpp>

#include <cmath>

#include "tests/support/catch.hpp"

namespace svg_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("numbers in a picture are short decimals", "[svg]") {
  CHECK(svg_number(12) == "12");
  CHECK(svg_number(12.5) == "12.5");
  CHECK(svg_number(-1.0 / 3) == "-0.33");
  CHECK(svg_number(-0.001) == "0");
  CHECK(svg_number(NAN) == "0");
  CHECK(svg_number(INFINITY) == "0");
}

TEST_CASE("a picture can contain any text", "[svg]") {
  CHECK(xml_text("a < b & \"c\" > d") == "a &lt; b &amp; &quot;c&quot; &gt; d");
  CHECK(xml_text("naïve … 日本") == "naïve … 日本");
  CHECK(xml_text(std::string("tab\t nul\0 bad\xff", 13)) == "tab\\x09 nul\\x00 bad");
  CHECK(xml_text("\xff") == "\\xff");
  CHECK(xml_text("\xef\xbf\xbf") == "?");
  CHECK(xml_text(std::string(500, 'x')).size() == 500);
}

TEST_CASE("texts are measured and truncated to a width", "[svg]") {
  CHECK(text_width("", 12) == 0);
  CHECK(text_width("mm", 12) == Approx(2 * text_width("m", 12)));
  CHECK(text_width("iii", 12) < text_width("mmm", 12));
  CHECK(text_width("abc", 12, true) > text_width("abc", 12));
  CHECK(text_width("abc", 24) == Approx(2 * text_width("abc", 12)));
  CHECK(fit_text("dense", 12, 100) == "dense");
  const std::string cut = fit_text("a_long_name_of_a_layer", 12, 60);
  CHECK(cut.starts_with("a_lon"));
  CHECK(cut.ends_with("…"));
  CHECK(text_width(cut, 12) <= 60);
  // Texts are never truncated within a character.
  CHECK(fit_text("éééééééé", 12, 40) == "éé…");
}

TEST_CASE("a picture is an XML document with its own background", "[svg]") {
  Svg svg(100, 50.5, "a & b");
  svg.line({1, 2}, {3, 4}, "stroke=\"#000000\"");
  svg.circle({5, 6}, 1.5, "");
  svg.text({7, 8}, "<x>", "font-size=\"11\"");
  const Point points[] = {{0, 0}, {1.25, 2}};
  svg.polyline(points, "stroke=\"#000000\"");
  svg.path("M0 0L1 1", "fill=\"none\"");
  CHECK(svg.document() ==
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"50.5\""
        " viewBox=\"0 0 100 50.5\""
        " font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" font-size=\"12\""
        " fill=\"#1f2328\">\n"
        "<title>a &amp; b</title>\n"
        "<rect x=\"0\" y=\"0\" width=\"100\" height=\"50.5\" fill=\"#ffffff\"/>\n"
        "<line x1=\"1\" y1=\"2\" x2=\"3\" y2=\"4\" stroke=\"#000000\"/>\n"
        "<circle cx=\"5\" cy=\"6\" r=\"1.5\"/>\n"
        "<text x=\"7\" y=\"8\" font-size=\"11\">&lt;x&gt;</text>\n"
        "<polyline points=\"0,0 1.25,2\" fill=\"none\" stroke=\"#000000\"/>\n"
        "<path d=\"M0 0L1 1\" fill=\"none\"/>\n"
        "</svg>\n");
}

}  // namespace svg_test
