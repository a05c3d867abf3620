#include "apps/llm/streamed_text.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace tessera::llm {

namespace {

/// Tokens of the prompt with which the first new one is decoded: it may depend on those before it.
constexpr size_t prompt_tokens = 6;
/// U+FFFD, which stands for bytes that are no character yet.
constexpr std::string_view replacement = "\xEF\xBF\xBD";

}  // namespace

StreamedText::StreamedText(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
                           std::vector<std::string> stop_words)
    : tokenizer_(tokenizer),
      stop_words_(std::move(stop_words)),
      ids_(prompt.end() - static_cast<std::ptrdiff_t>(std::min(prompt.size(), prompt_tokens)),
           prompt.end()),
      taken_(ids_.size()) {}

std::string StreamedText::add(int32_t token) {
  ids_.push_back(token);
  take_new_text(false);
  return without_stop_words(false);
}

std::string StreamedText::finish() {
  take_new_text(true);
  return without_stop_words(true);
}

std::string StreamedText::decoded(size_t end) const {
  return tokenizer_.decode(std::span(ids_).subspan(first_, end - first_));
}

void StreamedText::take_new_text(bool is_end) {
  const std::string before = decoded(taken_);
  std::string all = decoded(ids_.size());
  if (is_end) {
    while (all.ends_with(replacement)) all.resize(all.size() - replacement.size());
  }
  if (all.size() <= before.size() || all.ends_with(replacement)) return;
  kept_ += all.substr(before.size());
  first_ = taken_;
  taken_ = ids_.size();
}

std::string StreamedText::without_stop_words(bool is_end) {
  if (stopped_) return "";
  size_t end = kept_.size();
  for (const std::string& word : stop_words_) {
    const size_t found = kept_.find(word);
    if (found == std::string::npos) continue;
    stopped_ = true;
    end = std::min(end, found);
  }
  if (!stopped_ && !is_end) {
    for (const std::string& word : stop_words_) {
      // The longest end of the text with which the word begins.
      size_t length = std::min(word.size() - 1, kept_.size());
      while (length > 0 &&
             !std::string_view(kept_).ends_with(std::string_view(word).substr(0, length))) {
        --length;
      }
      end = std::min(end, kept_.size() - length);
    }
  }
  std::string text = kept_.substr(0, end);
  kept_.erase(0, end);
  return text;
}

}  // namespace tessera::llm
