#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/text/tokenizer.hpp>

namespace tessera::llm {

/// The text of tokens that come one by one: complete UTF-8 characters only, up to the first stop
/// word.
class StreamedText {
 public:
  /// Continues a prompt, which is not part of the text.
  StreamedText(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
               std::vector<std::string> stop_words);

  /// Adds a token; returns what the text has more now. A character that is not complete, and what
  /// may be the begin of a stop word, are kept back.
  std::string add(int32_t token);
  /// Returns what was kept back, without an incomplete character.
  std::string finish();
  /// Whether a stop word was found, before which the text ends.
  bool stopped() const { return stopped_; }

 private:
  std::string decoded(size_t end) const;
  /// Moves the new text of complete characters to `kept_`.
  void take_new_text(bool is_end);
  std::string without_stop_words(bool is_end);

  Tokenizer tokenizer_;
  std::vector<std::string> stop_words_;
  std::vector<int32_t> ids_;
  /// Tokens from `first_` on are decoded together; the text of those before `taken_` is known.
  size_t first_ = 0, taken_ = 0;
  std::string kept_;
  bool stopped_ = false;
};

}  // namespace tessera::llm
