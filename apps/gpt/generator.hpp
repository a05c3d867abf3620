#pragma once

#include <cstdint>
#include <memory>
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

/// Generates text with a model. A sampled word depends only on the logits, the seed and its
/// position, so texts are the same on every mesh. Collective.
class Generator {
 public:
  /// `layouts` are those that the model was compiled with.
  Generator(const ModelHandle& model, const std::vector<std::string>& vocabulary, int64_t length,
            const LayoutMap& layouts);

  /// Returns the text followed by the words that the model adds. Throws ConfigError for a text
  /// without words.
  std::string generate(const std::string& text, const Sampling& sampling) const;
  /// Returns the logits of the next word, (vocabulary), by a call on the last `length` words.
  at::Tensor next_logits(const std::vector<int64_t>& words) const;
  /// The key-value cache of a growing sequence, and the number of words in it.
  struct DecodeState {
    std::shared_ptr<KeyValueCache> cache;
    size_t words = 0;
  };
  /// A text that is being continued.
  struct Continuation {
    std::string text;  ///< with the words added so far
    Sampling sampling = {};
    std::vector<int64_t> words = {};  ///< the text's token ids
    int64_t added = 0;                ///< number of words added so far
    DecodeState state = {};

    bool complete() const { return added >= sampling.words; }
  };
  /// Returns a text without additions. Throws ConfigError for one without words.
  Continuation begin(const std::string& text, const Sampling& sampling) const;
  /// Adds one word: one decode step.
  void add_word(Continuation& continuation) const;
  /// Like next_logits() above, but calls the model only on the words that are not in the cache.
  /// Beyond `length` words positions shift with every word, so the cache is not used; nor is it in
  /// stages.
  at::Tensor next_logits(const std::vector<int64_t>& words, DecodeState& state) const;
  /// Returns the token id of the most probable next word.
  int64_t argmax_token(const std::vector<int64_t>& words) const;

 private:
  at::Tensor last_logits(const at::Tensor& row, const CallContext& context) const;
  at::Tensor predicted_logits(const at::Tensor& row) const;

  ModelHandle model_;
  TextVectorization words_;
  std::vector<std::string> vocabulary_;
  int64_t length_;
  LayoutMap layouts_;
};

}  // namespace tessera::gpt
