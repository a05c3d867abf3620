// Chats as the templates of the families write them, and which of their tokens are answers.
#include <tessera/framework/text/chat_format.hpp>

#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/small_tokenizer.hpp"

namespace chat_format_test {

using namespace tessera;
using Catch::Matchers::Contains;

namespace {

using Messages = std::vector<ChatMessage>;

Tokenizer tokenizer_with(const std::vector<std::string>& special) {
  return Tokenizer::from_json(test::small_tokenizer_json(special));
}

/// A family, its special tokens, and what its template makes of `messages()`.
struct Family {
  std::string name;
  std::vector<std::string> special;
  bool has_system;
  std::string chat, prompt;  ///< of all messages; of the first question
  std::vector<std::string> answers;
};

Messages messages(bool has_system) {
  Messages all = {{"user", " Hi\n"}, {"assistant", "Hello"}, {"user", "2+2"}, {"assistant", "4 "}};
  if (has_system) all.insert(all.begin(), {"system", "Be short."});
  return all;
}

std::vector<Family> families() {
  const std::string user = "<|start_header_id|>user<|end_header_id|>\n\n",
                    model = "<|start_header_id|>assistant<|end_header_id|>\n\n";
  return {
      {"chatml",
       {"<|im_start|>", "<|im_end|>"},
       true,
       "<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\n Hi\n<|im_end|>\n"
       "<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\n2+2<|im_end|>\n"
       "<|im_start|>assistant\n4 <|im_end|>\n",
       "<|im_start|>user\n Hi\n<|im_end|>\n<|im_start|>assistant\n",
       {"Hello<|im_end|>", "4 <|im_end|>"}},
      {"llama3",
       {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
       true,
       "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe short.<|eot_id|>" + user +
           "Hi<|eot_id|>" + model + "Hello<|eot_id|>" + user + "2+2<|eot_id|>" + model +
           "4<|eot_id|>",
       "<|begin_of_text|>" + user + "Hi<|eot_id|>" + model,
       {"Hello<|eot_id|>", "4<|eot_id|>"}},
      {"gemma",
       {"<bos>", "<start_of_turn>", "<end_of_turn>"},
       false,
       "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nHello<end_of_turn>\n"
       "<start_of_turn>user\n2+2<end_of_turn>\n<start_of_turn>model\n4<end_of_turn>\n",
       "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n",
       {"Hello<end_of_turn>", "4<end_of_turn>"}},
      {"mistral",
       {"<s>", "</s>", "[INST]", "[/INST]", "▁"},
       true,
       "<s>[INST]  Hi\n[/INST] Hello</s>[INST] Be short.\n\n2+2[/INST] 4 </s>",
       "<s>[INST]  Hi\n[/INST]",
       {" Hello</s>", " 4 </s>"}},
      {"mistral_tekken",
       {"<s>", "</s>", "[INST]", "[/INST]"},
       true,
       "<s>[INST] Hi\n[/INST]Hello</s>[INST]Be short.\n\n2+2[/INST]4 </s>",
       "<s>[INST] Hi\n[/INST]",
       {"Hello</s>", "4 </s>"}},
  };
}

}  // namespace

TEST_CASE("chats have the format whose special tokens the tokenizer has") {
  for (const Family& family : families()) {
    CAPTURE(family.name);
    const Tokenizer tokenizer = tokenizer_with(family.special);
    const ChatFormat format(tokenizer);
    CHECK(format.name() == family.name);
    const AnsweredText chat = format.chat(messages(family.has_system));
    CHECK(chat.text == family.chat);
    std::vector<std::string> answers;
    for (const auto& [begin, end] : chat.answers) {
      answers.push_back(chat.text.substr(begin, end - begin));
    }
    CHECK(answers == family.answers);
    CHECK(format.prompt(Messages{{"user", " Hi\n"}}) == family.prompt);
    // The model is asked with the tokens behind which it learned to answer, and ends as it did.
    const AnsweredTokens tokens =
        encode_answers(tokenizer, format.chat(Messages{{"user", " Hi\n"}, {"assistant", "Yes"}}),
                       {.add_special_tokens = false});
    const auto first =
        static_cast<size_t>(std::find(tokens.is_answer.begin(), tokens.is_answer.end(), true) -
                            tokens.is_answer.begin());
    const std::vector<int32_t> asked(tokens.ids.begin(),
                                     tokens.ids.begin() + static_cast<std::ptrdiff_t>(first));
    CHECK(tokenizer.encode(family.prompt, {.add_special_tokens = false}).ids == asked);
    const auto last = static_cast<size_t>(
        tokens.is_answer.rend() -
        std::find(tokens.is_answer.rbegin(), tokens.is_answer.rend(), true) - 1);
    CHECK(tokens.ids[last] == format.end_token());
  }
}

TEST_CASE("a token over the begin of an answer is one of it") {
  // "ab" is one token, which the prompt "xa" lacks.
  const Tokenizer tokenizer =
      Tokenizer::from_json(test::small_tokenizer_json({"<|e|>"}, {{"a", "b"}}));
  const AnsweredTokens tokens = encode_answers(tokenizer, {"xabc", {{2, 4}}});
  CHECK(tokens.ids == std::vector<int32_t>{'x', 257, 'c'});
  CHECK(tokens.is_answer == std::vector<bool>{false, true, true});
  const AnsweredTokens inner = encode_answers(tokenizer, {"xyzzy", {{1, 2}, {3, 5}}});
  CHECK(inner.is_answer == std::vector<bool>{false, true, false, true, true});
  CHECK(encode_answers(tokenizer, {"", {{0, 0}}}).ids.empty());
}

TEST_CASE("chats that a format cannot have are refused") {
  CHECK_THAT(test::error_line([] { ChatFormat(tokenizer_with({"<|endoftext|>"})); }),
             Contains("special tokens of ChatML, Llama 3, Gemma or Mistral"));
  const ChatFormat gemma(tokenizer_with({"<bos>", "<start_of_turn>", "<end_of_turn>"}));
  CHECK_THAT(test::error_line([&] { gemma.chat(messages(true)); }),
             Contains("chat, message 0") && Contains("gemma have no system messages"));
  const ChatFormat format(tokenizer_with({"<|im_start|>", "<|im_end|>"}));
  CHECK_THAT(test::error_line([&] {
               format.chat(Messages{{"user", "a"}, {"tool", "b"}});
             }),
             Contains("message 1") && Contains("Received: \"tool\""));
  CHECK_THAT(test::error_line([&] {
               format.chat(Messages{{"user", "a"}, {"system", "b"}});
             }),
             Contains("a system message is the first one"));
}

}  // namespace chat_format_test
