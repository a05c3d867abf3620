#include "apps/finetune/documents.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::finetune {

using namespace detail;

namespace {

constexpr int64_t documents_per_task = 8;

TokenDocument encoded_chat(const TrainingDocument& document, const Tokenizer& tokenizer,
                           const ChatFormat& format) {
  const AnsweredTokens tokens =
      encode_answers(tokenizer, format.chat(document.messages), {.add_special_tokens = false});
  return {.tokens = {tokens.ids.begin(), tokens.ids.end()}, .is_learned = tokens.is_answer};
}

TokenDocument encoded_text(const TrainingDocument& document, const Tokenizer& tokenizer,
                           std::optional<int64_t> end_token) {
  const std::string text = document.prompt + document.text;
  AnsweredTokens tokens =
      encode_answers(tokenizer, {text, {{document.prompt.size(), text.size()}}});
  TokenDocument encoded{.tokens = {tokens.ids.begin(), tokens.ids.end()},
                        .is_learned = std::move(tokens.is_answer)};
  if (end_token && (encoded.tokens.empty() || encoded.tokens.back() != *end_token)) {
    encoded.tokens.push_back(*end_token);
    encoded.is_learned.push_back(true);
  }
  return encoded;
}

std::vector<TokenDocument> encoded_documents(const std::string& path,
                                             const std::vector<TrainingDocument>& documents,
                                             const Tokenizer& tokenizer,
                                             std::optional<int64_t> end_token) {
  std::optional<ChatFormat> format;
  const auto chat = std::find_if(documents.begin(), documents.end(),
                                 [](const auto& each) { return !each.messages.empty(); });
  std::vector<TokenDocument> encoded(documents.size());
  const auto encode = [&](const TrainingDocument& document) {
    try {
      return document.messages.empty() ? encoded_text(document, tokenizer, end_token)
                                       : encoded_chat(document, tokenizer, *format);
    } catch (const Error&) {
      rethrow_at(str(path, ":", document.line));
    }
  };
  if (chat != documents.end()) {
    try {
      format.emplace(tokenizer);
    } catch (const Error&) {
      rethrow_at(str(path, ":", chat->line));
    }
  }
  at::parallel_for(0, std::ssize(documents), documents_per_task, [&](int64_t lo, int64_t hi) {
    for (auto i = static_cast<size_t>(lo); i < static_cast<size_t>(hi); ++i) {
      encoded[i] = encode(documents[i]);
    }
  });
  return encoded;
}

}  // namespace

TokenizedFile tokenize_file(const std::string& path, const Tokenizer& tokenizer,
                            std::optional<int64_t> end_token, double validation_split) {
  TokenizedFile file;
  const auto held_out_of_first = [&](int64_t count) {
    return static_cast<int64_t>(std::floor(static_cast<double>(count) * validation_split));
  };
  int64_t count = 0;
  for (TokenDocument& document :
       encoded_documents(path, datasets::read_json_lines(path), tokenizer, end_token)) {
    if (document.tokens.size() < 2) {
      ++file.left_out;
      continue;
    }
    const bool is_held_out = held_out_of_first(count + 1) > held_out_of_first(count);
    ++count;
    if (!is_held_out) {
      // No token is predicted from nothing, so the first one is never learned.
      file.learned += std::count(document.is_learned.begin() + 1, document.is_learned.end(), true);
    }
    (is_held_out ? file.validation : file.training).push_back(std::move(document));
  }
  if (file.learned > 0) return file;
  throw ConfigError(path, "documents have tokens to learn",
                    str(file.training.size(), " documents for training without such tokens"),
                    "add texts or completions");
}

}  // namespace tessera::finetune
