#include <tessera/framework/text/internal/unicode.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include <utf8proc.h>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/text/internal/unicode_differences.hpp>

namespace tessera::detail {
namespace {

utf8proc_category_t category_of(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_within(char32_t c, char32_t first, char32_t last) { return first <= c && c <= last; }

/// Whether a character is in one of the ranges, which are in order.
bool is_in(std::span<const CharacterRange> ranges, char32_t c) {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), c,
      [](char32_t value, const CharacterRange& range) { return value < range.first; });
  return after != ranges.begin() && c <= std::prev(after)->last;
}

/// Appends the normal form of a part of a text.
void append_normal_form(std::string_view text, int options, std::string& out) {
  if (text.empty()) return;
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                             static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  // The text is valid, so that only memory can be missing.
  if (size < 0) throw std::bad_alloc();
  out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
}

/// The characters of the 256 bytes: printable ones of Latin-1 stand for themselves, and the others,
/// in order, are U+0100 and up.
std::array<char32_t, 256> byte_characters() {
  std::array<char32_t, 256> characters{};
  char32_t next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable =
        is_within(byte, '!', '~') || is_within(byte, 0xA1, 0xAC) || is_within(byte, 0xAE, 0xFF);
    characters[byte] = printable ? static_cast<char32_t>(byte) : next++;
  }
  return characters;
}

const std::array<char32_t, 256> characters_of_bytes = byte_characters();

}  // namespace

char32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const size_t length = length_after(text[at]);
  char32_t c = byte(0);
  if (length == 2) c = (c & 0x1F) << 6 | (byte(1) & 0x3F);
  if (length == 3) c = (c & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  if (length == 4) {
    c = (c & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
  at += length;
  return c;
}

bool is_ascii(std::string_view text) {
  uint64_t bits = 0;
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t eight;
    std::memcpy(&eight, text.data() + at, 8);
    bits |= eight;
  }
  for (; at < text.size(); ++at) bits |= static_cast<uint64_t>(text[at] & 0x80);
  return (bits & 0x8080808080808080) == 0;
}

bool is_valid_utf8(std::string_view text) {
  if (is_ascii(text)) return true;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at, 4));
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at, 4));
    if (length == 0) {
      append_utf8(out, 0xFFFD);
      ++at;
      continue;
    }
    out.append(text, at, length);
    at += length;
  }
  return out;
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || is_within(c, '\t', '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || is_within(c, 0x2000, 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_number(char32_t c) {
  if (c < 0x80) return is_within(c, '0', '9');
  const utf8proc_category_t category = category_of(c);
  const bool number = category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
  return number != is_in(number_differences, c);
}

bool is_bert_punctuation(char32_t c) {
  if (c < 0x80) {
    return is_within(c, '!', '/') || is_within(c, ':', '@') || is_within(c, '[', '`') ||
           is_within(c, '{', '~');
  }
  const utf8proc_category_t category = category_of(c);
  const bool punctuation = category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
  return punctuation != is_in(punctuation_differences, c);
}

bool is_bert_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  const utf8proc_category_t category = category_of(c);
  const bool control = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                       category == UTF8PROC_CATEGORY_CO;
  return control != (c >= 0x80 && is_in(control_differences, c));
}

bool is_bert_ideograph(char32_t c) {
  return is_within(c, 0x4E00, 0x9FFF) || is_within(c, 0x3400, 0x4DBF) ||
         is_within(c, 0x20000, 0x2A6DF) || is_within(c, 0x2A700, 0x2B73F) ||
         is_within(c, 0x2B740, 0x2B81F) || is_within(c, 0x2B920, 0x2CEAF) ||
         is_within(c, 0xF900, 0xFAFF) || is_within(c, 0x2F800, 0x2FA1F);
}

bool is_nonspacing_mark(char32_t c) {
  if (c < 0x300) return false;
  return (category_of(c) == UTF8PROC_CATEGORY_MN) != is_in(nonspacing_differences, c);
}

bool is_mark(char32_t c) {
  if (c < 0x300) return false;
  const utf8proc_category_t category = category_of(c);
  const bool mark = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
  return mark != is_in(mark_differences, c);
}

bool is_word_character(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  // The categories of letters and marks follow each other.
  const bool letter_or_mark = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME;
  // Circled letters have the property Alphabetic, though they are symbols.
  const bool circled = is_within(c, 0x24B6, 0x24E9) || is_within(c, 0x1F130, 0x1F149) ||
                       is_within(c, 0x1F150, 0x1F169) || is_within(c, 0x1F170, 0x1F189);
  const bool word = letter_or_mark || category == UTF8PROC_CATEGORY_ND ||
                    category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_PC ||
                    circled || c == 0x200C || c == 0x200D;
  return word != (c >= 0x80 && is_in(word_differences, c));
}

void append_lower_case(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(is_within(c, 'A', 'Z') ? c + 32 : c);
    return;
  }
  if (c == 0x130) {
    text += "i\xCC\x87";
    return;
  }
  const std::span<const LowerCase> differences(lower_case_differences);
  const auto found = std::lower_bound(
      differences.begin(), differences.end(), c,
      [](const LowerCase& letter, char32_t value) { return letter.capital < value; });
  const bool differs = found != differences.end() && found->capital == c;
  append_utf8(text,
              differs ? found->lower
                      : static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

void to_normal_form(std::string& text, NormalForm form) {
  if (is_ascii(text)) return;
  int options = UTF8PROC_STABLE;
  const bool composes = form == NormalForm::nfc || form == NormalForm::nfkc;
  options |= composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
  std::span<const CharacterRange> unchanged = nfc_unchanged;
  if (form == NormalForm::nfd) unchanged = nfd_unchanged;
  if (options & UTF8PROC_COMPAT) unchanged = nfk_unchanged;
  std::string out;
  out.reserve(text.size());
  size_t done = 0;
  // Such characters begin a sequence of marks, so that texts before and after them are independent.
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (!is_in(unchanged, next_character(text, at))) continue;
    append_normal_form(std::string_view(text).substr(done, begin - done), options, out);
    out.append(text, begin, at - begin);
    done = at;
  }
  append_normal_form(std::string_view(text).substr(done), options, out);
  text = std::move(out);
}

size_t grapheme_length(std::string_view text) {
  constexpr utf8proc_int32_t combining_acute = 0x301;
  size_t at = 0;
  auto before = static_cast<utf8proc_int32_t>(next_character(text, at));
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    size_t after = at;
    auto c = static_cast<utf8proc_int32_t>(next_character(text, after));
    // In place of a mark that utf8proc does not know, one that it does.
    if (is_in(extending_differences, static_cast<char32_t>(c))) c = combining_acute;
    if (utf8proc_grapheme_break_stateful(before, c, &state)) break;
    before = c;
    at = after;
  }
  return at;
}

char32_t character_of_byte(unsigned char byte) { return characters_of_bytes[byte]; }

int byte_of_character(char32_t c) {
  static const std::array<int16_t, 324> bytes = [] {
    std::array<int16_t, 324> all{};
    all.fill(-1);
    for (unsigned byte = 0; byte < 256; ++byte) {
      all[byte_characters()[byte]] = static_cast<int16_t>(byte);
    }
    return all;
  }();
  return c < bytes.size() ? bytes[c] : -1;
}

}  // namespace tessera::detail
