#include <tessera/framework/base/internal/strings.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace tessera::detail {
namespace {

// Longer words come from malicious files only; the distance costs the product of the lengths.
constexpr size_t longest_word = 200;

char lower(char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Returns the number of insertions, deletions, replacements and swaps of neighbours between a and
/// b.
size_t typing_mistakes(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> current(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, current);
  }
  return last[b.size()];
}

bool is_continuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates, size_t most) {
  if (word.empty() || word.size() > longest_word) return "";
  std::string best;
  size_t fewest = std::min(std::max<size_t>(1, word.size() / 3), most) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > longest_word) continue;
    const size_t mistakes = typing_mistakes(word, candidate);
    if (mistakes >= fewest || mistakes >= candidate.size()) continue;
    fewest = mistakes;
    best = candidate;
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const std::string close = nearest(word, candidates);
  if (!close.empty()) return "write " + in_quotes(close);
  return candidates.empty() ? "remove it" : "use one of " + quoted_list(candidates);
}

std::string join(std::span<const std::string> texts, std::string_view separator) {
  std::string joined;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) joined += separator;
    joined += texts[i];
  }
  return joined;
}

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return 1;
  size_t length = 0;
  if (0xC2 <= first && first < 0xF5) length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  const auto second = static_cast<uint8_t>(text[1]);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second > 0x9F;
  const bool beyond = first == 0xF4 && second > 0x8F;
  return overlong || surrogate || beyond ? 0 : length;
}

void append_utf8(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
    text += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0 | c >> 12);
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | c >> 18);
    text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  }
}

std::string one_line(std::string_view text, size_t max_bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  size_t at = 0;
  while (at < text.size() && at < max_bytes) {
    const size_t length = utf8_length(text.substr(at));
    const auto byte = static_cast<uint8_t>(text[at]);
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += text.substr(at, length);
    }
    at += std::max<size_t>(length, 1);
  }
  return at < text.size() ? out + "..." : out;
}

std::string in_quotes(std::string_view text, size_t max_bytes) {
  return "\"" + one_line(text, max_bytes) + "\"";
}

std::string quoted_list(std::span<const std::string> texts, size_t max_items) {
  std::vector<std::string> items;
  for (const std::string& text : texts.first(std::min(max_items, texts.size()))) {
    items.push_back(in_quotes(text));
  }
  if (texts.size() > max_items) items.push_back("...");
  return join(items, ", ");
}

}  // namespace tessera::detail
