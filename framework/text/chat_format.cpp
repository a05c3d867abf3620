#include <tessera/framework/text/chat_format.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

/// The texts around the messages of a chat. `end` is one token.
struct detail::ChatStyle {
  const char* name;
  std::array<const char*, 3> tokens;  ///< by which a tokenizer is recognized, "" for none
  const char* begin;                  ///< before the first message
  /// Around a system message. Without `system_open`, it stands before the last user's message;
  /// null: there is none.
  const char *system_open, *system_close;
  const char *user_open, *user_close;
  const char* answer_open;   ///< before an answer, also of a prompt
  const char* answer_begin;  ///< part of an answer
  const char* end;           ///< likewise
  const char* answer_close;
  bool trims;  ///< whether blanks around contents are left out
};

using namespace detail;

namespace {

constexpr std::array<ChatStyle, 5> chat_styles = {{
    {.name = "chatml",
     .tokens = {"<|im_start|>", "<|im_end|>", ""},
     .begin = "",
     .system_open = "<|im_start|>system\n",
     .system_close = "<|im_end|>\n",
     .user_open = "<|im_start|>user\n",
     .user_close = "<|im_end|>\n",
     .answer_open = "<|im_start|>assistant\n",
     .answer_begin = "",
     .end = "<|im_end|>",
     .answer_close = "\n",
     .trims = false},
    {.name = "llama3",
     .tokens = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
     .begin = "<|begin_of_text|>",
     .system_open = "<|start_header_id|>system<|end_header_id|>\n\n",
     .system_close = "<|eot_id|>",
     .user_open = "<|start_header_id|>user<|end_header_id|>\n\n",
     .user_close = "<|eot_id|>",
     .answer_open = "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .answer_begin = "",
     .end = "<|eot_id|>",
     .answer_close = "",
     .trims = true},
    {.name = "gemma",
     .tokens = {"<start_of_turn>", "<end_of_turn>", ""},
     .begin = "<bos>",
     .system_open = nullptr,
     .system_close = nullptr,
     .user_open = "<start_of_turn>user\n",
     .user_close = "<end_of_turn>\n",
     .answer_open = "<start_of_turn>model\n",
     .answer_begin = "",
     .end = "<end_of_turn>",
     .answer_close = "\n",
     .trims = true},
    {.name = "mistral",
     .tokens = {"[INST]", "[/INST]", "▁"},
     .begin = "<s>",
     .system_open = "",
     .system_close = "\n\n",
     .user_open = "[INST] ",
     .user_close = "[/INST]",
     .answer_open = "",
     .answer_begin = " ",
     .end = "</s>",
     .answer_close = "",
     .trims = false},
    {.name = "mistral_tekken",
     .tokens = {"[INST]", "[/INST]", ""},
     .begin = "<s>",
     .system_open = "",
     .system_close = "\n\n",
     .user_open = "[INST]",
     .user_close = "[/INST]",
     .answer_open = "",
     .answer_begin = "",
     .end = "</s>",
     .answer_close = "",
     .trims = false},
}};

const ChatStyle& style_of(const Tokenizer& tokenizer) {
  for (const ChatStyle& style : chat_styles) {
    const auto known = [&](const char* token) {
      return *token == '\0' || tokenizer.token_id(token).has_value();
    };
    const auto& tokens = style.tokens;
    if (std::all_of(tokens.begin(), tokens.end(), known) && known(style.end)) return style;
  }
  throw ConfigError("chat",
                    "a tokenizer has the special tokens of ChatML, Llama 3, Gemma or Mistral",
                    "one without them", "use a model that was trained on chats, or plain texts");
}

std::string_view chat_content(const ChatMessage& message, const ChatStyle& style) {
  std::string_view content = message.content;
  if (!style.trims) return content;
  constexpr std::string_view blanks = " \t\n\r\f\v";
  content.remove_prefix(std::min(content.find_first_not_of(blanks), content.size()));
  return content.substr(0, content.find_last_not_of(blanks) + 1);
}

/// Returns the number of the last message of a user; the number of messages if there is none.
size_t last_question(std::span<const ChatMessage> messages) {
  for (size_t i = messages.size(); i > 0; --i) {
    if (messages[i - 1].role == "user") return i - 1;
  }
  return messages.size();
}

void check_chat(std::span<const ChatMessage> messages, const ChatStyle& style) {
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    const std::string where = str("chat, message ", i);
    if (role != "system" && role != "user" && role != "assistant") {
      throw ConfigError(where, "a role is system, user or assistant", in_quotes(role),
                        "leave the message out");
    }
    if (role != "system") continue;
    if (!style.system_open) {
      throw ConfigError(where, str("chats of ", style.name, " have no system messages"), "one",
                        "put it before the user's first message");
    }
    if (i == 0) continue;
    throw ConfigError(where, "a system message is the first one", str("message ", i),
                      "put it before the others");
  }
}

}  // namespace

AnsweredTokens encode_answers(const Tokenizer& tokenizer, const AnsweredText& text,
                              const EncodeOptions& options) {
  AnsweredTokens tokens;
  tokenizer.encode_ids(text.text, tokens.ids, options);
  std::vector<int32_t> before;
  const auto tokens_before = [&](size_t end) {
    if (end >= text.text.size()) return std::ssize(tokens.ids);
    tokenizer.encode_ids(std::string_view(text.text).substr(0, end), before, options);
    return std::mismatch(before.begin(), before.end(), tokens.ids.begin(), tokens.ids.end()).first -
           before.begin();
  };
  tokens.is_answer.assign(tokens.ids.size(), false);
  for (const auto& [begin, end] : text.answers) {
    const auto first = tokens_before(begin);
    const auto last = std::max(first, tokens_before(end));
    std::fill(tokens.is_answer.begin() + first, tokens.is_answer.begin() + last, true);
  }
  return tokens;
}

ChatFormat::ChatFormat(const Tokenizer& tokenizer)
    : style_(&style_of(tokenizer)), end_token_(*tokenizer.token_id(style_->end)) {}

std::string ChatFormat::name() const { return style_->name; }

AnsweredText ChatFormat::chat(std::span<const ChatMessage> messages) const {
  check_chat(messages, *style_);
  AnsweredText out{style_->begin, {}};
  std::string& text = out.text;
  const bool is_apart = style_->system_open && *style_->system_open != '\0';
  const size_t question = last_question(messages);
  std::string system;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string_view content = chat_content(messages[i], *style_);
    if (messages[i].role == "system") {
      system = str(style_->system_open, content, style_->system_close);
      if (is_apart) text += system;
    } else if (messages[i].role == "user") {
      text += style_->user_open;
      if (i == question && !is_apart) text += system;
      text += str(content, style_->user_close);
    } else {
      text += style_->answer_open;
      const size_t begin = text.size();
      text += str(style_->answer_begin, content, style_->end);
      out.answers.push_back({begin, text.size()});
      text += style_->answer_close;
    }
  }
  return out;
}

std::string ChatFormat::prompt(std::span<const ChatMessage> messages) const {
  return chat(messages).text + style_->answer_open;
}

std::string ChatFormat::prompt(const std::vector<ChatMessage>& messages) const {
  return prompt(std::span(messages));
}

}  // namespace tessera
