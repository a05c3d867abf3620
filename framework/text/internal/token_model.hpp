#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/text/internal/vocabulary.hpp>

namespace tessera::detail {

/// Splits pieces of text into the tokens of a vocabulary. Thread-safe.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// Whether pieces are bytes that the vocabulary writes as characters (character_of_byte()). Set
  /// before the first piece.
  void set_byte_level(bool byte_level) { byte_level_ = byte_level; }
  /// Whether the model can read bytes, rather than the characters that stand for them.
  virtual bool reads_bytes() const { return false; }
  /// Appends the ids of a piece's tokens. Throws ConfigError if the piece has unknown characters
  /// and the vocabulary no token for them.
  virtual void tokenize(std::string_view piece, std::vector<int32_t>& ids) const = 0;

 protected:
  explicit TokenModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

  Vocabulary vocabulary_;
  bool byte_level_ = false;
};

/// Makes a model from its object in tokenizer.json. Throws ConfigError naming the file, the path,
/// and a kind that is not implemented.
std::unique_ptr<TokenModel> make_token_model(const Json& json, const JsonPath& path);

// One function for each kind, in a source of its own.
std::unique_ptr<TokenModel> make_byte_pair_model(JsonObject& json, const Json& vocabulary,
                                                 const Json& merges);
std::unique_ptr<TokenModel> make_word_piece_model(JsonObject& json, const Json& vocabulary);
std::unique_ptr<TokenModel> make_word_level_model(JsonObject& json, const Json& vocabulary);
std::unique_ptr<TokenModel> make_unigram_model(JsonObject& json, const Json& vocabulary);

/// Returns the ids of the tokens "<0x00>" to "<0xFF>" that stand for single bytes; -1 for none.
std::vector<int32_t> byte_tokens(const Vocabulary& vocabulary);

/// Appends the tokens of a text's bytes. Returns false, and appends none, if a byte has no token.
bool append_byte_tokens(const std::vector<int32_t>& tokens, std::string_view text,
                        std::vector<int32_t>& ids);

/// Returns the id of the token that key `key` names; nothing for null. Throws ConfigError if the
/// vocabulary lacks the token.
std::optional<int32_t> take_token(JsonObject& json, const std::string& key,
                                  const Vocabulary& vocabulary);

}  // namespace tessera::detail
