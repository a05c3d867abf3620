#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/text/internal/token_model.hpp>
#include <tessera/framework/text/internal/token_trie.hpp>
#include <tessera/framework/text/internal/unicode.hpp>

namespace tessera::detail {
namespace {

/// Takes the longest token from the left, again and again (WordPiece). Tokens within a word have a
/// prefix. A word with a part that no token begins is unknown.
class WordPieceModel final : public TokenModel {
 public:
  WordPieceModel(JsonObject& json, const Json& vocabulary)
      : TokenModel(Vocabulary(vocabulary, json.path().key("vocab"))),
        unknown_(take_token(json, "unk_token", vocabulary_)),
        max_characters_(json.take_or<uint64_t>("max_input_chars_per_word", 100)) {
    const auto prefix = json.take_or<std::string>("continuing_subword_prefix", "##");
    vocabulary_.for_each([&](std::string_view token, int32_t id) { trie_.add(token, id); });
    inner_ = trie_.find(prefix);
  }

  void tokenize(std::string_view piece, std::vector<int32_t>& ids) const override {
    const size_t before = ids.size();
    if (!is_too_long(piece)) {
      size_t at = 0;
      while (at < piece.size()) {
        const size_t end = take_longest(piece, at, ids);
        if (end == at) break;
        at = end;
      }
      if (at == piece.size()) return;
      ids.resize(before);
    }
    if (!unknown_) {
      throw ConfigError("WordPiece", "a vocabulary with the token of \"unk_token\"",
                        "a word without tokens", "add the token to the vocabulary");
    }
    ids.push_back(*unknown_);
  }

 private:
  bool is_too_long(std::string_view piece) const {
    if (piece.size() <= max_characters_) return false;
    size_t characters = 0;
    for (const char c : piece) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    return characters > max_characters_;
  }

  /// Appends the longest token at `at`; returns its end, or `at` if there is none.
  size_t take_longest(std::string_view piece, size_t at, std::vector<int32_t>& ids) const {
    std::optional<uint32_t> node = TokenTrie::root;
    if (at > 0) node = inner_;
    size_t end = at;
    int32_t longest = TokenTrie::none;
    for (size_t i = at; i < piece.size() && node; ++i) {
      node = trie_.next(*node, piece[i]);
      if (!node || trie_.number(*node) == TokenTrie::none) continue;
      // Tokens of valid UTF-8 end between characters.
      longest = trie_.number(*node);
      end = i + 1;
    }
    if (end > at) ids.push_back(longest);
    return end;
  }

  std::optional<int32_t> unknown_;
  uint64_t max_characters_;
  TokenTrie trie_;
  std::optional<uint32_t> inner_;  ///< behind the prefix
};

/// Looks whole pieces up.
class WordLevelModel final : public TokenModel {
 public:
  WordLevelModel(JsonObject& json, const Json& vocabulary)
      : TokenModel(Vocabulary(vocabulary, json.path().key("vocab"))),
        unknown_(take_token(json, "unk_token", vocabulary_)) {}

  void tokenize(std::string_view piece, std::vector<int32_t>& ids) const override {
    std::optional<int32_t> id = vocabulary_.id(piece);
    if (!id) id = unknown_;
    if (!id) {
      throw ConfigError("WordLevel", "a vocabulary with the token of \"unk_token\"",
                        "an unknown word", "add the token to the vocabulary");
    }
    ids.push_back(*id);
  }

 private:
  std::optional<int32_t> unknown_;
};

}  // namespace

std::unique_ptr<TokenModel> make_word_piece_model(JsonObject& json, const Json& vocabulary) {
  return std::make_unique<WordPieceModel>(json, vocabulary);
}

std::unique_ptr<TokenModel> make_word_level_model(JsonObject& json, const Json& vocabulary) {
  return std::make_unique<WordLevelModel>(json, vocabulary);
}

}  // namespace tessera::detail
