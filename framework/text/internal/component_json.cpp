#include <tessera/framework/text/internal/component_json.hpp>

#include <utility>

namespace tessera::detail {
namespace {

/// Finds a text that is not empty.
void find_text(const std::string& wanted, std::string_view text, std::vector<TextRange>& out) {
  out.clear();
  for (size_t at = text.find(wanted); at != std::string_view::npos;
       at = text.find(wanted, at + wanted.size())) {
    out.push_back({at, at + wanted.size()});
  }
}

}  // namespace

MatchFinder take_pattern(JsonObject& object) {
  JsonObject pattern = object.take_object("pattern");
  const bool is_text = pattern.has("String");
  const std::string key = is_text ? "String" : "Regex";
  auto text = pattern.take<std::string>(key);
  pattern.finish();
  const JsonPath path = pattern.path().key(key);
  if (!is_text) {
    return [regex = RegularExpression(text, path.text())](
               std::string_view in, std::vector<TextRange>& out) { regex.find_all(in, out); };
  }
  if (text.empty()) json_fail(text, path, "a text that is not empty");
  return [text = std::move(text)](std::string_view in, std::vector<TextRange>& out) {
    find_text(text, in, out);
  };
}

void replace_matches(const MatchFinder& find, const std::string& content, std::string& text) {
  thread_local std::vector<TextRange> matches;
  find(text, matches);
  if (matches.empty()) return;
  std::string out;
  size_t at = 0;
  for (const TextRange& match : matches) {
    out.append(text, at, match.begin - at);
    out += content;
    at = match.end;
  }
  out.append(text, at);
  text = std::move(out);
}

std::string take_character(JsonObject& object, const std::string& key) {
  auto text = object.take<std::string>(key);
  if (text.empty() || utf8_length(text) != text.size()) {
    json_fail(text, object.path().key(key), "one character");
  }
  return text;
}

}  // namespace tessera::detail
