#include "tests/support/xml_check.hpp"

#include "tests/support/catch.hpp"

namespace xml_check_test {

using namespace tessera;

namespace {

std::string error_of(const std::string& body) {
  return test::parse_xml("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + body).error;
}

}  // namespace

TEST_CASE("well-formed documents are read", "[xml_check]") {
  const test::Xml xml = test::parse_xml(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg a=\"1\">\n<g><text x=\"&amp;\">a &lt; b"
      "</text></g><rect/>\n</svg>\n");
  CHECK(xml.error == "");
  CHECK(xml.texts("text") == std::vector<std::string>{"a < b"});
  CHECK(xml.count("rect") == 1);
  CHECK(xml.elements[0].attributes == " a=\"1\"");
}

TEST_CASE("errors in documents that are not well-formed are found", "[xml_check]") {
  CHECK(error_of("<svg></svg>") == "");
  CHECK(error_of("") == "not closed");
  CHECK(error_of("<svg>") == "not closed");
  CHECK(error_of("<svg></g>") == "unexpected </g>");
  CHECK(error_of("<svg></svg><svg/>") == "second root <svg/>");
  CHECK(error_of("<svg></svg>text") == "text outside");
  CHECK(error_of("<svg>&nbsp;</svg>") == "unknown entity &nbsp");
  CHECK(error_of("<svg>a & b</svg>").starts_with("unknown entity & b"));
  CHECK(error_of("<svg a=1/>") == "bad tag <svg a=1/>");
  CHECK(error_of("<svg a=\"<\"/>").starts_with("bad tag"));
  CHECK(error_of(std::string("<svg>\x01</svg>")) == "control character");
  CHECK(test::parse_xml("<svg/>").error == "no XML declaration");
}

}  // namespace xml_check_test
