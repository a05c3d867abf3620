#include <tessera/layers/text/internal/word_splitter.hpp>

#include <algorithm>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr uint16_t dropped = 256;
constexpr uint16_t space = 257;
constexpr std::string_view punctuation = "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'";
constexpr std::string_view whitespace = " \t\n\v\f\r";
constexpr std::string_view replacement = "\xef\xbf\xbd";

void check_name(const std::string& argument, const std::string& name,
                const std::vector<std::string>& known) {
  if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return;
  throw ConfigError(argument, "one of " + quoted_list(known) + ", none or a function",
                    in_quotes(name), suggestion(name, known));
}

struct Bytes {
  uint8_t low, high;
};

/// Returns the valid second bytes of a character that begins with `first`; later bytes are in
/// [0x80, 0xbf].
std::optional<Bytes> second_byte(uint8_t first) {
  if (first < 0xc2 || first > 0xf4) return std::nullopt;
  if (first == 0xe0) return Bytes{0xa0, 0xbf};
  if (first == 0xed) return Bytes{0x80, 0x9f};
  if (first == 0xf0) return Bytes{0x90, 0xbf};
  if (first == 0xf4) return Bytes{0x80, 0x8f};
  return Bytes{0x80, 0xbf};
}

/// Returns the length of the character that `text` begins with; if it is invalid, minus the length
/// of its maximal subpart.
int character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const auto second = second_byte(byte(0));
  if (!second || text.size() < 2 || byte(1) < second->low || byte(1) > second->high) return -1;
  const size_t length = byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  for (size_t i = 2; i < length; ++i) {
    if (i == text.size() || byte(i) < 0x80 || byte(i) > 0xbf) return -static_cast<int>(i);
  }
  return static_cast<int>(length);
}

void split_characters(std::string_view text, Tokens& out) {
  while (!text.empty()) {
    const int length = character_length(text);
    const auto bytes = static_cast<size_t>(std::abs(length));
    out.add(length > 0 ? text.substr(0, bytes) : replacement);
    text.remove_prefix(bytes);
  }
}

}  // namespace

void Tokens::add(std::string_view token) {
  char* begin = room(token.size());
  end_token(std::copy(token.begin(), token.end(), begin));
}

WordSplitter::WordSplitter(const Standardize& standardize, const Split& split)
    : standardize_(standardize), split_(split) {
  const std::string& name = standardize.name();
  check_name("standardize", name, {"lower", "strip_punctuation", "lower_and_strip_punctuation"});
  check_name("split", split.name(), {"whitespace", "character"});
  for (uint16_t byte = 0; byte < 256; ++byte) map_[byte] = byte;
  if (name.starts_with("lower")) {
    for (char c = 'A'; c <= 'Z'; ++c) map_[static_cast<uint8_t>(c)] = static_cast<uint8_t>(c | 32);
  }
  if (name.ends_with("strip_punctuation")) {
    for (const char c : punctuation) map_[static_cast<uint8_t>(c)] = dropped;
  }
  if (split.name() == "whitespace") {
    for (const char c : whitespace) map_[static_cast<uint8_t>(c)] = space;
  }
}

std::string WordSplitter::standardized(std::string_view text) const {
  std::string result;
  for (const char c : text) {
    const uint16_t byte = map_[static_cast<uint8_t>(c)];
    if (byte != dropped) result.push_back(static_cast<char>(byte));
  }
  return result;
}

void WordSplitter::split_words(std::string_view text, Tokens& out) const {
  char* begin = out.room(text.size());
  char* end = begin;
  for (const char c : text) {
    const uint16_t byte = map_[static_cast<uint8_t>(c)];
    if (byte < dropped) {
      *end++ = static_cast<char>(byte);
    } else if (byte == space && end != begin) {
      out.end_token(end);
      begin = ++end;
    }
  }
  if (end != begin) out.end_token(end);
}

void WordSplitter::operator()(std::string_view text, Tokens& out) const {
  out.clear();
  std::string buffer;
  if (standardize_.function()) {
    buffer = standardize_.function()(text);
    text = buffer;
  }
  if (split_.name() == "whitespace") return split_words(text, out);
  if (!standardize_.name().empty()) {
    buffer = standardized(text);
    text = buffer;
  }
  if (split_.function()) {
    for (const std::string& token : split_.function()(text)) out.add(token);
  } else if (split_.name() == "character") {
    split_characters(text, out);
  } else {
    out.add(text);
  }
}

}  // namespace tessera::detail
