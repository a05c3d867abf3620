#include "apps/gpt/generator.hpp"

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "apps/gpt/corpus.hpp"

namespace tessera::gpt {

using namespace detail;

void add_sampling_options(app::AppOptions& options, Sampling& sampling) {
  options.add({"words", "Text", "words to add to a text", app::integer(sampling.words, 1)});
  options.add({"top-k", "Text", "sample from this many of the most probable words; 1: greedy",
               app::integer(sampling.top_k, 1)});
  options.add({"temperature", "Text", "divisor of the logits; below 1 favors more probable words",
               app::positive_number(sampling.temperature)});
}

Generator::Generator(const ModelHandle& model, const std::vector<std::string>& vocabulary,
                     int64_t length)
    : model_(model), words_(words_of(vocabulary)), vocabulary_(vocabulary), length_(length) {}

std::string Generator::generate(const std::string& text, const Sampling& sampling) const {
  Text continued = begin(text, sampling);
  while (!continued.complete()) add_word(continued);
  return continued.text;
}

Generator::Text Generator::begin(const std::string& text, const Sampling& sampling) const {
  const at::Tensor known = words_({cleaned(text)})[0];
  TokenIds words;
  for (int64_t i = 0; i < known.numel() && known[i].item<int64_t>() != 0; ++i) {
    words.push_back(known[i].item<int64_t>());
  }
  if (words.empty()) {
    throw ConfigError("generate", "the prompt must contain words", in_quotes(text),
                      "begin with a word or two");
  }
  // The vocabulary may be smaller than the model's. The model is known to continue its texts.
  const GenerateOptions options{.max_new_tokens = sampling.words,
                                .temperature = sampling.temperature,
                                .top_k = sampling.top_k,
                                .seed = sampling.seed,
                                .vocabulary_size = std::ssize(vocabulary_),
                                .max_context = length_,
                                .check_model = false};
  return {text, Continuation(model_, {words}, options)};
}

void Generator::add_word(Text& text) const {
  text.continuation.step();
  const int64_t word = text.continuation.texts()[0].tokens.back();
  text.text += " " + vocabulary_[static_cast<size_t>(word)];
}

}  // namespace tessera::gpt
