#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/pretrained.hpp"
#include "apps/common/processes.hpp"
#include "apps/common/run_app.hpp"
#include "apps/common/setup.hpp"
#include "apps/llm/streamed_text.hpp"

namespace tessera::llm {

using namespace detail;

namespace {

struct LlmFlags {
  std::string folder;
  std::vector<std::string> texts;
  std::string adapter, tokenizer, system, stop;
  bool chat = false;
  int64_t words = 64;
  std::optional<double> temperature = std::nullopt;
  std::optional<int64_t> top_k = std::nullopt;
  std::optional<double> top_p = std::nullopt;
};

void add_llm_options(app::AppOptions& options, LlmFlags& flags) {
  options.add_argument("FOLDER",
                       "language model of Hugging Face's programs, or a .gguf file of llama.cpp's",
                       flags.folder);
  options.add_arguments("TEXT", "texts to continue; after -- they may begin with a dash",
                        flags.texts);
  options.add({"adapter", "Model", "folder of adapters that finetune or peft wrote",
               app::input_folder(flags.adapter)});
  options.add({"tokenizer", "Model", "tokenizer.json, or a folder with it; by default FOLDER",
               app::text(flags.tokenizer, "PATH")});
  options.add(
      {"words", "Text", "maximum number of tokens to add to a text", app::integer(flags.words, 1)});
  options.add({"temperature", "Text",
               "divisor of the logits, to draw tokens; by default each is the most probable one",
               app::positive_number(flags.temperature)});
  options.add({"top-k", "Text", "draw from this many of the most probable tokens",
               app::integer(flags.top_k, 1)});
  options.add({"top-p", "Text",
               "draw from the fewest most probable tokens whose probabilities sum to at least this",
               app::positive_number(flags.top_p)});
  options.add(
      {"stop", "Text", "text before which a continuation ends", app::text(flags.stop, "TEXT")});
  options.add({"chat", "Text", "answer the texts, as messages of a user", app::toggle(flags.chat)});
  options.add({"system", "Text", "system message of --chat", app::text(flags.system, "TEXT")});
  app::add_dtype_option(options);
}

void check_llm_flags(const LlmFlags& flags) {
  if (flags.texts.empty()) {
    throw ConfigError("TEXT", "a text to continue", "none", "write one after FOLDER");
  }
  if (!flags.system.empty() && !flags.chat) {
    throw ConfigError("--system", "--chat, of which it is a message", "none", "add --chat");
  }
  if (flags.top_p && *flags.top_p > 1) {
    throw ConfigError("--top-p", "a probability, at most 1", str(*flags.top_p),
                      "leave it out to draw from all tokens");
  }
  if (flags.folder.ends_with(".gguf") && flags.tokenizer.empty()) {
    throw ConfigError("--tokenizer", "the tokenizer of a .gguf file", "none",
                      "name a tokenizer.json");
  }
}

/// A model with its tokenizer, and how it is asked.
class Writer {
 public:
  Writer(const LlmFlags& flags, const app::CommonOptions& common, const LayoutMap& layouts);

  /// Prints a text and its continuation, or with --chat the answer.
  void write(const std::string& text) const;

 private:
  std::vector<int32_t> prompt_of(const std::string& text) const;

  const LlmFlags& flags_;
  bool prints_;
  int64_t seed_;
  Tokenizer tokenizer_;
  ModelHandle model_;
  std::optional<ChatFormat> format_;
  std::vector<int64_t> stop_tokens_;
};

ModelHandle load_adapted(const LlmFlags& flags, const LayoutMap& layouts) {
  ModelHandle model = load_pretrained(flags.folder, {.layouts = layouts});
  if (!flags.adapter.empty()) load_pretrained_adapters(model, flags.folder, flags.adapter);
  model.compile({.layouts = layouts});
  return model;
}

Writer::Writer(const LlmFlags& flags, const app::CommonOptions& common, const LayoutMap& layouts)
    : flags_(flags),
      prints_(app::is_first_process(common)),
      seed_(common.seed),
      tokenizer_(app::pretrained_tokenizer(
          layouts.mesh(), flags.tokenizer.empty() ? flags.folder : flags.tokenizer)),
      model_(load_adapted(flags, layouts)) {
  app::check_vocabulary(model_, tokenizer_, flags.folder);
  if (!flags.folder.ends_with(".gguf")) stop_tokens_ = pretrained_stop_tokens(flags.folder);
  if (!flags.chat) return;
  format_.emplace(tokenizer_);
  stop_tokens_.push_back(format_->end_token());
}

std::vector<int32_t> Writer::prompt_of(const std::string& text) const {
  std::vector<int32_t> ids;
  if (!format_) {
    tokenizer_.encode_ids(text, ids);
    return ids;
  }
  std::vector<ChatMessage> messages = {{"user", text}};
  if (!flags_.system.empty()) messages.insert(messages.begin(), {"system", flags_.system});
  tokenizer_.encode_ids(format_->prompt(messages), ids, {.add_special_tokens = false});
  return ids;
}

void Writer::write(const std::string& text) const {
  using Clock = std::chrono::steady_clock;
  const std::vector<int32_t> prompt = prompt_of(text);
  if (prompt.empty()) {
    throw ConfigError("TEXT", "a text has tokens", "none", "begin with a word or two");
  }
  std::vector<std::string> stop_words;
  if (!flags_.stop.empty()) stop_words.push_back(flags_.stop);
  StreamedText added(tokenizer_, prompt, std::move(stop_words));
  const auto print = [&](const std::string& part) {
    if (prints_) std::cout << part << std::flush;
  };
  if (!format_) print(text);
  const auto is_stop = [&](int64_t token) {
    return std::find(stop_tokens_.begin(), stop_tokens_.end(), token) != stop_tokens_.end();
  };
  const auto start = Clock::now();
  std::optional<Clock::time_point> first_token;
  int64_t tokens = 0;
  GenerateOptions options{.max_new_tokens = flags_.words,
                          .temperature = flags_.temperature,
                          .top_k = flags_.top_k,
                          .top_p = flags_.top_p,
                          .seed = seed_,
                          .stop_tokens = stop_tokens_,
                          .vocabulary_size = tokenizer_.vocabulary_size(),
                          .max_context = app::rows_of_weight(model_, "positions/embeddings"),
                          .check_model = false};
  options.stop = [&](std::span<const int64_t>) { return added.stopped(); };
  options.on_token = [&](int64_t, int64_t token) {
    if (!first_token) first_token = Clock::now();
    ++tokens;
    if (!is_stop(token)) print(added.add(static_cast<int32_t>(token)));
  };
  generate(model_, {TokenIds(prompt.begin(), prompt.end())}, options);
  const auto end = Clock::now();
  print(added.finish() + "\n");
  if (!prints_) return;
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  std::fprintf(stderr, "llm: prompt of %zu tokens, first token after %.2f s", prompt.size(),
               seconds(*first_token - start));
  if (tokens > 1) {
    std::fprintf(stderr, ", %.1f tokens/s",
                 static_cast<double>(tokens - 1) / seconds(end - *first_token));
  }
  std::fprintf(stderr, "\n");
}

int llm_main(int argc, char** argv) {
  app::AppOptions options(
      "llm", "Continues texts, or answers messages, with a pretrained language model.",
      {"data-dir", "train-size", "test-size", "batch-size", "epochs", "steps-per-epoch",
       "learning-rate", "memory-limit", "peak-flops", "shuffle", "dtype", "history", "plot",
       "plot-model", "tensorboard", "profile", "summary", "plan", "verbose"});
  LlmFlags flags;
  add_llm_options(options, flags);
  if (!options.parse(argc, argv)) return 0;
  check_llm_flags(flags);
  const app::CommonOptions& common = options.common();
  const app::Setup setup = app::set_up(common, {{"batch", 1}});
  const Writer writer(flags, common, setup.layouts);
  for (const std::string& text : flags.texts) writer.write(text);
  return 0;
}

}  // namespace

}  // namespace tessera::llm

int main(int argc, char** argv) {
  return tessera::app::run_app(argc, argv, tessera::llm::llm_main);
}
