#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tessera/framework/model/model.hpp>
#include <tessera/framework/text/tokenizer.hpp>
#include <tessera/framework/training/step_records.hpp>

namespace tessera {

/// The token ids of a text.
using TokenIds = std::vector<int64_t>;

/// The options of generate() and Continuation.
struct GenerateOptions {
  int64_t max_new_tokens = 64;  ///< maximum number of tokens added to a text
  /// Divisor of the logits; below 1 favors more probable tokens. Without temperature, top_k and
  /// top_p, each token is the most probable one (of equal ones, that of the lower id); with any of
  /// them, tokens are drawn.
  std::optional<double> temperature = std::nullopt;
  std::optional<int64_t> top_k =
      std::nullopt;  ///< draws from this many of the most probable tokens
  /// Draws from the fewest most probable tokens, of the `top_k`, whose probabilities sum to at
  /// least this (nucleus sampling).
  std::optional<double> top_p = std::nullopt;
  int64_t seed = 0;  ///< a drawn token depends on logits, seed, text number and position only
  /// Number of beams of a beam search, which draws nothing; 1: none. Logarithms of probabilities
  /// are summed; as in transformers, a text's score is the sum / (number of new
  /// tokens)^length_penalty.
  int64_t num_beams = 1;
  double length_penalty = 1;  ///< above 0 favors longer texts, below 0 shorter ones
  /// Whether a beam search ends as soon as `num_beams` texts have ended, instead of when no other
  /// beam has a better score.
  bool early_stopping = false;
  std::vector<int64_t> stop_tokens = {};  ///< token ids that end a text; they belong to it
  /// Strings that end a text, which ends before the first of them: only with a Tokenizer.
  std::vector<std::string> stop_words = {};
  /// Called with the new tokens of a text after each one; true ends the text (default: never).
  std::function<bool(std::span<const int64_t>)> stop = nullptr;
  /// Called with the number of a text and its new token, as soon as there is one; not with beams.
  std::function<void(int64_t text, int64_t token)> on_token = nullptr;
  /// Only tokens below this are generated (default: all that the model has logits for).
  std::optional<int64_t> vocabulary_size = std::nullopt;
  /// Number of last tokens that the model is called on, for one with learned positions (default:
  /// all). The cache serves texts up to this length only, as positions then shift with each token.
  std::optional<int64_t> max_context = std::nullopt;
  /// Whether to call the model on two tokens first, with a cache and without one, and to refuse one
  /// whose logits differ.
  bool check_model = true;
};

/// The tokens that a model adds to a text.
struct GeneratedTokens {
  TokenIds tokens;  ///< the new tokens
  /// The logarithm of each token's probability, by the model's logits as they are: without
  /// temperature and whatever tokens it was drawn from.
  std::vector<double> log_probabilities;
  bool stopped = false;  ///< whether a stop token, a stop word or `stop` ended it
  double score = 0;      ///< the sum of log_probabilities; of a beam search, see num_beams
};

/// Texts that are being continued, one token each at a time.
///
///     Continuation texts(model, {{5, 80, 7}, {9}}, {.max_new_tokens = 20, .top_p = 0.9});
///     while (!texts.complete()) texts.step();
///
/// All texts are rows of one batch with one KeyValueCache. Each is continued as if it were alone,
/// up to rounding.
class Continuation {
 public:
  /// Prompts are token ids. Throws ConfigError for invalid options, prompts without tokens, and a
  /// model that cannot be continued: with several inputs or outputs, or layers that depend
  /// on other steps without the cache (recurrent layers, attention without use_causal_mask).
  Continuation(const ModelHandle& model, const std::vector<TokenIds>& prompts,
               const GenerateOptions& options = {});
  Continuation(Continuation&&) noexcept;
  Continuation& operator=(Continuation&&) noexcept;
  ~Continuation();

  /// Whether all texts have ended.
  bool complete() const;
  /// Adds a token to each text that has not ended: one call of the model on new tokens. Collective.
  void step();
  /// Returns what was added so far; of a beam search, the best text so far.
  std::vector<GeneratedTokens> texts() const;
  /// Returns how many calls on one further token were eager, captured and replayed, and why the
  /// last one was eager: of a compiled model, in all texts since compile().
  StepRecords step_records() const;

 private:
  class Search;
  class Sampling;
  class Beams;
  std::unique_ptr<Search> search_;
};

/// Continues texts with a model that predicts the next token: its input is (batch, T) token ids,
/// its output (batch, T, vocabulary) logits. The model may be of any class; layers that look at
/// other steps must use KeyValueCache, as TransformerBlock, MultiHeadAttention, GroupQueryAttention
/// (all with use_causal_mask) and PositionEmbedding do.
///
///     auto texts = generate(model, {{5, 80, 7}, {9}}, {.max_new_tokens = 20, .stop_tokens = {2}});
///
/// The texts are the same on every mesh, and those of several prompts the same as each alone, but
/// for rounding. The first call on a prompt is split into powers of two, and capacities are powers
/// of two, so that a program makes few plans whatever the lengths of its texts. A model that is
/// compiled with stages predicts whole rows for each token, of max_context tokens, or else of the
/// capacity. Collective: every
/// process passes the same prompts and gets all texts. Throws like Continuation.
std::vector<GeneratedTokens> generate(const ModelHandle& model,
                                      const std::vector<TokenIds>& prompts,
                                      const GenerateOptions& options = {});
/// Continues texts; returns each prompt as the tokenizer decodes it, with what was added.
///
///     std::string text = generate(model, load_tokenizer("SmolLM2-135M/"), "The capital of",
///                                 {.top_p = 0.9, .stop_words = {"\n"}});
std::vector<std::string> generate(const ModelHandle& model, const Tokenizer& tokenizer,
                                  const std::vector<std::string>& prompts,
                                  const GenerateOptions& options = {});
std::string generate(const ModelHandle& model, const Tokenizer& tokenizer,
                     const std::string& prompt, const GenerateOptions& options = {});

}  // namespace tessera
