#pragma once

#include <string>
#include <vector>

namespace tessera::test {

using namespace detail;

/// An XML document without comments, CDATA and processing instructions other than the first line.
struct Xml {
  struct Element {
    std::string name;
    std::string attributes;
    /// Character data directly inside it, with entities resolved.
    std::string text;
  };
  /// The elements in order of their start tags.
  std::vector<Element> elements;
  /// Why the document is not well-formed; empty if it is.
  std::string error;

  /// Returns the texts of all elements of a name.
  std::vector<std::string> texts(const std::string& name) const;
  int count(const std::string& name) const;
};

Xml parse_xml(const std::string& document);

}  // namespace tessera::test
