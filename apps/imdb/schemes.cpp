#include "apps/imdb/schemes.hpp"

#include "apps/imdb/layout_texts.hpp"

namespace tessera::imdb {

using namespace detail;

namespace {

Scheme scheme(const std::string& name, const char* text) {
  const std::string source = "layouts/" + name + ".json";
  return {name, layout_file_from_json(parse_json(text, source), source)};
}

}  // namespace

const std::vector<Scheme>& schemes() {
  static const std::vector<Scheme> all = {scheme("data", layout_texts::data),
                                          scheme("model", layout_texts::model),
                                          scheme("spatial", layout_texts::spatial)};
  return all;
}

}  // namespace tessera::imdb
