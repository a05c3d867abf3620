#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/text/internal/normalizer.hpp>
#include <tessera/framework/text/internal/token_trie.hpp>
#include <tessera/framework/text/internal/vocabulary.hpp>

namespace tessera::detail {

/// Tokens that are found in a text before it is normalized or split. Thread-safe.
class AddedTokens {
 public:
  /// A part of a text: an added token, or with token -1 what is between them.
  struct Part {
    size_t begin;
    size_t end;
    int32_t token;
  };

  AddedTokens() = default;
  /// Reads a list of tokens. A token of the vocabulary has its id there. Throws ConfigError.
  AddedTokens(const Json& json, const JsonPath& path, const Vocabulary& vocabulary,
              const Normalizer& normalizer);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  bool is_special(int32_t id) const { return special_.contains(id); }

  /// Replaces `out` by the parts of valid UTF-8: at tokens that are not normalized, or at those
  /// that are, in a text that is.
  void find(std::string_view text, bool normalized, std::vector<Part>& out) const;

 private:
  struct Token {
    int32_t id;
    bool single_word;
    bool lstrip;
    bool rstrip;
  };
  /// Tokens by their texts, and whether a byte begins one.
  struct Table {
    TokenTrie trie;
    std::array<bool, 256> begins{};
    bool empty = true;
  };

  void read_token(JsonObject& json, const Vocabulary& vocabulary, const Normalizer& normalizer);
  /// Returns the longest token at a byte of a text: its number and its end; -1 for none.
  static std::pair<int32_t, size_t> longest(const Table& table, std::string_view text, size_t at);

  Vocabulary vocabulary_;
  std::set<int32_t> special_;
  std::vector<Token> tokens_;
  Table tables_[2];  ///< by whether tokens are normalized
};

}  // namespace tessera::detail
