#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/framework/text/tokenizer.hpp>

namespace tessera {

namespace detail {
struct ChatStyle;
}  // namespace detail

/// A message of a chat.
struct ChatMessage {
  std::string role;  ///< "system", "user" or "assistant"
  std::string content;
};

/// A text and the parts of it that a model is to write.
struct AnsweredText {
  /// The bytes [begin, end) of a text.
  struct Answer {
    size_t begin = 0, end = 0;
  };
  std::string text;
  std::vector<Answer> answers;  ///< ascending, without overlaps
};

/// The tokens of an AnsweredText. Both lists have the same length.
struct AnsweredTokens {
  std::vector<int32_t> ids;     ///< token ids
  std::vector<bool> is_answer;  ///< whether a token is one of an answer
};

/// Encodes a text with its answers. The tokens of an answer are those behind the ones that the text
/// before it has by itself, so that a token over the begin of an answer is one of it.
AnsweredTokens encode_answers(const Tokenizer& tokenizer, const AnsweredText& text,
                              const EncodeOptions& options = {});

/// How the messages of a chat become one text, as a family of models was trained with it. The
/// tokenizer's special tokens say which family it is; the template of tokenizer_config.json, a
/// program in Jinja, is not read, and default system messages that some of them add are left out.
///
///     const Tokenizer tokenizer = load_tokenizer("SmolLM2-135M-Instruct/");
///     const ChatFormat format(tokenizer);
///     std::string text = format.prompt({{"user", "What is the capital of France?"}});
///
/// The formats are "chatml" (Qwen, SmolLM), "llama3", "gemma", and Mistral's with SentencePiece or
/// Tekken, "mistral" and "mistral_tekken".
class ChatFormat {
 public:
  /// Throws ConfigError for a tokenizer without the tokens of one of these formats.
  explicit ChatFormat(const Tokenizer& tokenizer);

  std::string name() const;
  /// Returns the text of a chat, special tokens included: encode it without adding them. Each
  /// message of the assistant is an answer, together with the token that ends it. Throws
  /// ConfigError for an unknown role, and a system message that the format cannot have.
  AnsweredText chat(std::span<const ChatMessage> messages) const;
  /// Returns the text behind which the model writes the assistant's next message. Throws as chat().
  std::string prompt(std::span<const ChatMessage> messages) const;
  std::string prompt(const std::vector<ChatMessage>& messages) const;
  /// Returns the id of the token that ends an answer.
  int32_t end_token() const { return end_token_; }

 private:
  const detail::ChatStyle* style_;
  int32_t end_token_ = 0;
};

}  // namespace tessera
