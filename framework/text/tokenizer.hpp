#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

namespace detail {
class TokenizerPipeline;
}  // namespace detail

/// How sequences that are too long are shortened. Special tokens stay.
struct Truncation {
  int64_t max_length = 512;                ///< with special tokens
  std::string strategy = "longest_first";  ///< or "only_first", "only_second" of two texts
  std::string direction = "right";         ///< the end that is dropped: "right" or "left"
};

/// How sequences of a batch become equally long.
struct Padding {
  std::optional<int64_t> length = std::nullopt;  ///< default: the longest sequence's
  std::string direction = "right";               ///< the padded end: "right" or "left"
  int64_t multiple_of = 1;                       ///< lengths are rounded up to a multiple of it
  int32_t pad_id = 0;                            ///< token id of padding
  int32_t pad_type_id = 0;                       ///< type id of padding
};

/// The tokens of a text, or of two. All lists have the same length.
struct Encoding {
  std::vector<int32_t> ids;       ///< token ids
  std::vector<int32_t> type_ids;  ///< 0 for the first text and 1 for the second, in most models
  std::vector<int32_t> attention_mask;       ///< 0 for padding, otherwise 1
  std::vector<int32_t> special_tokens_mask;  ///< 1 for special tokens and padding, otherwise 0
};

/// Options of Tokenizer::encode().
struct EncodeOptions {
  bool add_special_tokens = true;  ///< whether the special tokens of the model's template are added
  int64_t threads = 0;             ///< threads of encode_batch() (default: one for each processor)
};

/// Options of Tokenizer::decode().
struct DecodeOptions {
  bool skip_special_tokens = true;  ///< whether special tokens are left out
};

/// Turns texts into token ids and back, as Hugging Face's `tokenizers` does. Copies share the
/// vocabulary. Thread-safe but for the setters.
///
///     const Tokenizer tokenizer = load_tokenizer("SmolLM2-135M/");
///     const Encoding words = tokenizer.encode("The capital of France is");
///     std::string text = tokenizer.decode(words.ids);
class Tokenizer {
 public:
  /// Makes a tokenizer from the text of a tokenizer.json. `where` names the file in errors. Throws
  /// ConfigError naming the file, the JSON path and a kind that is not implemented.
  static Tokenizer from_json(std::string_view text, const std::string& where = "tokenizer.json");

  /// Encodes a text; without padding unless that has a length. Invalid UTF-8 becomes U+FFFD.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// Encodes two texts as one sequence.
  Encoding encode(std::string_view first, std::string_view second,
                  const EncodeOptions& options = {}) const;
  /// Encodes texts on several threads, padded if the tokenizer pads.
  std::vector<Encoding> encode_batch(std::span<const std::string_view> texts,
                                     const EncodeOptions& options = {}) const;
  /// Encodes texts on several threads, padded if the tokenizer pads.
  std::vector<Encoding> encode_batch(const std::vector<std::string>& texts,
                                     const EncodeOptions& options = {}) const;
  /// Replaces `ids` by the token ids of a text: encode() without its other lists, nor padding.
  void encode_ids(std::string_view text, std::vector<int32_t>& ids,
                  const EncodeOptions& options = {}) const;

  /// Returns the text of token ids; unknown ids are left out.
  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options = {}) const;

  /// Returns the smallest number above all token ids: the rows of an embedding.
  int64_t vocabulary_size() const;
  /// Returns a token's id; nothing if the vocabulary lacks it.
  std::optional<int32_t> token_id(std::string_view token) const;
  /// Returns a token as its vocabulary writes it; nothing for an unknown id.
  std::optional<std::string> token(int32_t id) const;

  /// Returns how sequences are shortened, as the file says or set_truncation() did.
  const std::optional<Truncation>& truncation() const { return truncation_; }
  /// Throws ConfigError for invalid options.
  void set_truncation(std::optional<Truncation> truncation);
  /// Returns how sequences are padded, as the file says or set_padding() did.
  const std::optional<Padding>& padding() const { return padding_; }
  /// Throws ConfigError for invalid options.
  void set_padding(std::optional<Padding> padding);

  /// Returns the text that from_json() reads. Throws StateError for a `.model` file.
  const std::string& to_json() const;

 private:
  friend Tokenizer load_tokenizer(const std::string& path);
  explicit Tokenizer(std::shared_ptr<const detail::TokenizerPipeline> pipeline);
  void pad_all(std::span<Encoding> encodings) const;

  std::shared_ptr<const detail::TokenizerPipeline> pipeline_;
  std::optional<Truncation> truncation_;
  std::optional<Padding> padding_;
};

/// Reads a tokenizer from a folder of Hugging Face or a file: `tokenizer.json`; `vocab.json` and
/// `merges.txt`, as GPT-2's; `vocab.txt`, as BERT's; or SentencePiece's `*.model`, if the library
/// was built with it, whose sequences have no special tokens. Throws FileError for files that
/// cannot be read, ConfigError naming the file and the JSON path for what they contain.
Tokenizer load_tokenizer(const std::string& path);

}  // namespace tessera
