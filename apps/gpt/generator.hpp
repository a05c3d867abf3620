#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "apps/gpt/gpt_model.hpp"

namespace tessera::gpt {

/// The options of sampling words.
struct Sampling {
  int64_t words = 40;      ///< number of words to add
  int64_t top_k = 10;      ///< samples from the `top_k` most probable words; 1: greedy
  double temperature = 1;  ///< divides the logits; below 1 favors more probable words
  int64_t seed = 1337;
};

void add_sampling_options(app::AppOptions& options, Sampling& sampling);

/// Continues texts of words by generate(). A text is the same on every mesh. Collective.
class Generator {
 public:
  /// `model` is compiled; `length` is its context length in words.
  Generator(const ModelHandle& model, const std::vector<std::string>& vocabulary, int64_t length);

  /// Returns the text followed by the words that the model adds. Throws ConfigError for a text
  /// without words.
  std::string generate(const std::string& text, const Sampling& sampling) const;
  /// A text that is being continued.
  struct Text {
    std::string text;           ///< with the words added so far
    Continuation continuation;  ///< its token ids

    bool complete() const { return continuation.complete(); }
  };
  /// Returns a text without additions. Throws ConfigError for one without words.
  Text begin(const std::string& text, const Sampling& sampling) const;
  /// Adds one word: one decode step.
  void add_word(Text& text) const;

 private:
  ModelHandle model_;
  TextVectorization words_;
  std::vector<std::string> vocabulary_;
  int64_t length_;
};

}  // namespace tessera::gpt
