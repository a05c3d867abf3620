#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/text/internal/added_tokens.hpp>
#include <tessera/framework/text/internal/normalizer.hpp>
#include <tessera/framework/text/internal/post_processor.hpp>
#include <tessera/framework/text/internal/pre_tokenizer.hpp>
#include <tessera/framework/text/internal/token_decoder.hpp>
#include <tessera/framework/text/internal/token_model.hpp>
#include <tessera/framework/text/internal/word_cache.hpp>
#include <tessera/framework/text/tokenizer.hpp>

namespace tessera::detail {

/// The steps of a tokenizer with one text, without truncation and padding. Thread-safe.
class TokenizerPipeline {
 public:
  virtual ~TokenizerPipeline() = default;

  /// Appends the tokens of a text, without special ones that the text does not contain.
  virtual void append_tokens(std::string_view text, std::vector<int32_t>& ids) const = 0;
  virtual std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const = 0;
  virtual int64_t vocabulary_size() const = 0;
  virtual std::optional<int32_t> token_id(std::string_view token) const = 0;
  virtual std::optional<std::string> token(int32_t id) const = 0;

  const PostProcessor& post_processor() const { return post_processor_; }
  const std::optional<Truncation>& truncation() const { return truncation_; }
  const std::optional<Padding>& padding() const { return padding_; }
  /// The text that it was made from; empty for a file of SentencePiece.
  const std::string& json_text() const { return json_text_; }

 protected:
  PostProcessor post_processor_;
  std::optional<Truncation> truncation_;
  std::optional<Padding> padding_;
  std::string json_text_;
};

/// A tokenizer by the steps of a tokenizer.json.
class JsonPipeline final : public TokenizerPipeline {
 public:
  /// `where` names the file in errors. Throws ConfigError.
  JsonPipeline(std::string text, const std::string& where);

  void append_tokens(std::string_view text, std::vector<int32_t>& ids) const override;
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const override;
  int64_t vocabulary_size() const override;
  std::optional<int32_t> token_id(std::string_view token) const override;
  std::optional<std::string> token(int32_t id) const override;

 private:
  /// Memory of one call, kept for the next one.
  struct Scratch {
    WordCache words;
    SplitText split;
    std::vector<AddedTokens::Part> parts;
    std::vector<AddedTokens::Part> inner_parts;
  };
  class ScratchLoan;

  void append_part(std::string_view part, bool is_first, Scratch& scratch,
                   std::vector<int32_t>& ids) const;
  const std::string* find_token(int32_t id) const;

  Normalizer normalizer_;
  PreTokenizing pre_tokenizer_;
  std::unique_ptr<TokenModel> model_;
  AddedTokens added_;
  TokenDecoder decoder_;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> idle_;  ///< guarded by mutex_
};

// Each of these throws ConfigError if the library was built without tokenizers.

/// Returns the tokenizer of a tokenizer.json's text. `where` names the file in errors. Throws
/// ConfigError.
std::shared_ptr<const TokenizerPipeline> pipeline_from_json(std::string text,
                                                            const std::string& where);

/// Reads a file of SentencePiece. Throws FileError, ConfigError if the library was built without
/// it.
std::shared_ptr<const TokenizerPipeline> load_sentence_piece(const std::string& path);

/// Returns the text of a tokenizer.json that is equivalent to the vocabulary files of a folder: an
/// empty one if it has none that are known. Throws FileError, ConfigError.
std::string tokenizer_json_of_folder(const std::string& folder);

}  // namespace tessera::detail
