#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera::detail {

/// Returns the character of valid UTF-8 that begins at byte `at`, and moves `at` behind it.
char32_t next_character(std::string_view text, size_t& at);

/// Returns the length in bytes of the character that begins with the byte `first` of valid UTF-8.
inline size_t length_after(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// Whether all bytes are ASCII.
bool is_ascii(std::string_view text);

/// Whether the text is valid UTF-8.
bool is_valid_utf8(std::string_view text);

/// Returns the text with each invalid byte replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

/// Unicode's White_Space.
bool is_white_space(char32_t c);
/// The categories Nd, Nl and No.
bool is_number(char32_t c);
/// ASCII's punctuation and symbols, and the categories P of Unicode 8, as BERT's tokenizer splits.
bool is_bert_punctuation(char32_t c);
/// Whether BERT's tokenizer drops a character: the categories Cc, Cf and Co, but no tabs and line
/// ends.
bool is_bert_control(char32_t c);
/// The ranges of ideographs that BERT's tokenizer puts between spaces.
bool is_bert_ideograph(char32_t c);
/// The category Mn.
bool is_nonspacing_mark(char32_t c);
/// The categories Mn, Mc and Me.
bool is_mark(char32_t c);
/// Word characters of regular expressions by Unicode's UTS 18: letters, marks, digits, connectors.
bool is_word_character(char32_t c);

/// Appends the lower case of a character: two characters for U+0130, otherwise one.
void append_lower_case(std::string& text, char32_t c);

/// Unicode's normal forms.
enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// Replaces valid UTF-8 by its normal form.
void to_normal_form(std::string& text, NormalForm form);

/// Returns the length in bytes of the first extended grapheme cluster of valid, non-empty UTF-8.
size_t grapheme_length(std::string_view text);

/// Returns the character that stands for a byte in byte-level vocabularies, as GPT-2 chose them.
char32_t character_of_byte(unsigned char byte);
/// Returns the byte that a character of byte-level vocabularies stands for; -1 if for none.
int byte_of_character(char32_t c);

}  // namespace tessera::detail
