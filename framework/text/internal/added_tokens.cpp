#include <tessera/framework/text/internal/added_tokens.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/text/internal/unicode.hpp>

namespace tessera::detail {
namespace {

char32_t first_character(std::string_view text) {
  size_t at = 0;
  return next_character(text, at);
}

/// Returns where the last character of a text that is not empty begins.
size_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (text[at] & 0xC0) == 0x80) --at;
  return at;
}

/// Returns where the spaces at the end of a text begin.
size_t before_spaces(std::string_view text) {
  while (!text.empty()) {
    const size_t at = last_character(text);
    if (!is_white_space(first_character(text.substr(at)))) break;
    text = text.substr(0, at);
  }
  return text.size();
}

/// Returns how many bytes the spaces at the beginning of a text have.
size_t after_spaces(std::string_view text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size() && is_white_space(next_character(text, at));) end = at;
  return end;
}

bool is_word_alone(std::string_view text, size_t begin, size_t end) {
  const auto is_word = [](std::string_view rest) {
    return is_word_character(first_character(rest));
  };
  if (begin > 0 && is_word(text.substr(last_character(text.substr(0, begin))))) return false;
  return end == text.size() || !is_word(text.substr(end));
}

}  // namespace

AddedTokens::AddedTokens(const Json& json, const JsonPath& path, const Vocabulary& vocabulary,
                         const Normalizer& normalizer) {
  if (json.is_null()) return;
  if (!json.is_array()) json_fail(json, path, "a list");
  for (size_t i = 0; i < json.size(); ++i) {
    JsonObject token(json[i], path.index(i));
    read_token(token, vocabulary, normalizer);
    token.finish();
  }
}

void AddedTokens::read_token(JsonObject& json, const Vocabulary& vocabulary,
                             const Normalizer& normalizer) {
  const auto id = json.take<int32_t>("id");
  if (id < 0 || id == INT32_MAX) {
    json_fail(id, json.path().key("id"), "an id that is not negative");
  }
  auto content = json.take<std::string>("content");
  const bool special = json.take_or("special", false);
  const bool normalized = json.take_or("normalized", !special);
  const Token token{vocabulary.id(content).value_or(id), json.take_or("single_word", false),
                    json.take_or("lstrip", false), json.take_or("rstrip", false)};
  if (content.empty() || vocabulary_.id(content)) return;
  vocabulary_.add(content, token.id);
  if (special) special_.insert(token.id);
  if (normalized && normalizer) normalizer(content);
  if (content.empty()) return;
  Table& table = tables_[normalized ? 1 : 0];
  table.empty = false;
  table.begins[static_cast<unsigned char>(content[0])] = true;
  table.trie.add(content, static_cast<int32_t>(tokens_.size()));
  tokens_.push_back(token);
}

std::pair<int32_t, size_t> AddedTokens::longest(const Table& table, std::string_view text,
                                                size_t at) {
  std::pair<int32_t, size_t> found{TokenTrie::none, at};
  std::optional<uint32_t> node = TokenTrie::root;
  for (size_t i = at; i < text.size(); ++i) {
    node = table.trie.next(*node, text[i]);
    if (!node) break;
    if (table.trie.number(*node) != TokenTrie::none) found = {table.trie.number(*node), i + 1};
  }
  return found;
}

void AddedTokens::find(std::string_view text, bool normalized, std::vector<Part>& out) const {
  out.clear();
  const Table& table = tables_[normalized ? 1 : 0];
  size_t done = 0;
  for (size_t at = table.empty ? text.size() : 0; at < text.size();) {
    if (!table.begins[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const auto [number, match_end] = longest(table, text, at);
    if (number == TokenTrie::none) {
      ++at;
      continue;
    }
    const Token& token = tokens_[static_cast<size_t>(number)];
    size_t begin = at;
    size_t end = match_end;
    at = match_end;
    if (token.single_word && !is_word_alone(text, begin, end)) continue;
    if (token.lstrip) begin = std::max(before_spaces(text.substr(0, begin)), done);
    if (token.rstrip) end += after_spaces(text.substr(end));
    if (done < begin) out.push_back({done, begin, -1});
    out.push_back({begin, end, token.id});
    done = end;
  }
  if (done != text.size()) out.push_back({done, text.size(), -1});
}

}  // namespace tessera::detail
