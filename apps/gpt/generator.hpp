#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "apps/gpt/gpt_model.hpp"

namespace tessera::gpt {

/// How words are chosen.
struct Sampling {
  int64_t words = 40;      ///< words to add
  int64_t top_k = 10;      ///< the choice is among so many of the likeliest words; 1: the likeliest
  double temperature = 1;  ///< divides logits: below 1 likelier words are chosen more often
  int64_t seed = 1337;
};

void add_sampling_options(app::AppOptions& options, Sampling& sampling);

/// Continues texts by a model's choices. What is chosen follows from the logits, the seed and the
/// word's place alone: the same on every mesh. Collective.
class Generator {
 public:
  /// `layouts`: where the model lies, as it was compiled.
  Generator(const ModelHandle& model, const std::vector<std::string>& vocabulary, int64_t length,
            const LayoutMap& layouts);

  /// The text and the words that the model adds, fewer if it is to stop. Throws ConfigError
  /// for a text without words.
  std::string continued(const std::string& text, const Sampling& sampling,
                        const std::stop_token& stop = {}) const;
  /// Logits of the word behind some words, one for each of the vocabulary, by a call on all that
  /// the model sees.
  at::Tensor logits_behind(const std::vector<int64_t>& words) const;
  /// What the model keeps of words that grow from call to call.
  struct Seen {
    std::shared_ptr<KeyValueCache> cache;
    size_t words = 0;
  };
  /// The same by a call on the words behind those that were seen. Where there are more than the
  /// model sees, each has another place from word to word, and the call is on all of them.
  at::Tensor logits_behind(const std::vector<int64_t>& words, Seen& seen) const;
  /// The number of the likeliest word behind some words.
  int64_t likeliest_behind(const std::vector<int64_t>& words) const;

 private:
  at::Tensor last_logits(const at::Tensor& row, const CallContext& context) const;

  ModelHandle model_;
  TextVectorization words_;
  std::vector<std::string> vocabulary_;
  int64_t length_;
  LayoutMap layouts_;
};

}  // namespace tessera::gpt
