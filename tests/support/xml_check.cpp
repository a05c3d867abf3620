#include "tests/support/xml_check.hpp"

#include <algorithm>
#include <map>
#include <regex>

namespace tessera::test {

using namespace detail;

namespace {

/// Returns `raw` with entities resolved; reports an unknown one in `error`.
std::string resolve(const std::string& raw, std::string& error) {
  static const std::map<std::string, std::string> entities = {
      {"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}};
  std::string text;
  for (size_t at = 0; at < raw.size(); ++at) {
    if (static_cast<unsigned char>(raw[at]) < 0x20 && raw[at] != '\n') error = "control character";
    if (raw[at] != '&') {
      text += raw[at];
      continue;
    }
    const size_t end = std::min(raw.find(';', at), raw.size());
    const auto known = entities.find(raw.substr(at + 1, end - at - 1));
    if (known == entities.end()) {
      error = "unknown entity " + raw.substr(at, end - at);
      return text;
    }
    text += known->second;
    at = end;
  }
  return text;
}

/// Processes a start or end tag; `open` are the enclosing elements.
void read_tag(const std::string& line, Xml& xml, std::vector<size_t>& open) {
  static const std::regex tag(R"re(<(/?)([a-z]+)((?:\s+[a-zA-Z0-9:-]+="[^"<>]*")*)\s*(/?)>)re");
  std::smatch match;
  if (!std::regex_match(line, match, tag)) {
    xml.error = "bad tag " + line;
  } else if (match[1].length() == 0) {
    if (open.empty() && !xml.elements.empty()) xml.error = "second root " + line;
    resolve(match[3], xml.error);
    xml.elements.push_back({match[2], match[3], ""});
    if (match[4].length() == 0) open.push_back(xml.elements.size() - 1);
  } else if (open.empty() || xml.elements[open.back()].name != match[2]) {
    xml.error = "unexpected " + line;
  } else {
    open.pop_back();
  }
}

}  // namespace

std::vector<std::string> Xml::texts(const std::string& name) const {
  std::vector<std::string> matches;
  for (const Element& element : elements) {
    if (element.name == name) matches.push_back(element.text);
  }
  return matches;
}

int Xml::count(const std::string& name) const { return static_cast<int>(texts(name).size()); }

Xml parse_xml(const std::string& document) {
  const std::string head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  Xml xml;
  if (!document.starts_with(head)) xml.error = "no XML declaration";
  std::vector<size_t> open;
  for (size_t at = head.size(); xml.error.empty();) {
    const size_t next = std::min(document.find('<', at), document.size());
    const std::string text = resolve(document.substr(at, next - at), xml.error);
    if (!open.empty()) xml.elements[open.back()].text += text;
    if (text.find_first_not_of("\n ") != text.npos && open.empty()) xml.error = "text outside";
    if (next == document.size()) break;
    at = std::min(document.find('>', next), document.size() - 1) + 1;
    read_tag(document.substr(next, at - next), xml, open);
  }
  if (xml.error.empty() && (!open.empty() || xml.elements.empty())) xml.error = "not closed";
  return xml;
}

}  // namespace tessera::test
