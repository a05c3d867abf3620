#include <tessera/framework/generation/generate.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/generation/internal/token_decoder.hpp>
#include <tessera/framework/generation/internal/token_sampler.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns the rows of logits on the host.
std::span<const double> row_of(const at::Tensor& logits, int64_t row) {
  const auto width = static_cast<size_t>(logits.size(1));
  return {logits.const_data_ptr<double>() + size_t(row) * width, width};
}

DecoderOptions decoder_options(const GenerateOptions& options) {
  return {.max_new_tokens = options.max_new_tokens,
          .max_context = options.max_context,
          .vocabulary_size = options.vocabulary_size};
}

/// Returns whether the last of a text's new tokens ends it.
bool ends_text(const TokenIds& added, const GenerateOptions& options) {
  const std::vector<int64_t>& stops = options.stop_tokens;
  if (std::find(stops.begin(), stops.end(), added.back()) != stops.end()) return true;
  return options.stop && options.stop(added);
}

void add_token(GeneratedTokens& text, int64_t token, double log_probability) {
  text.tokens.push_back(token);
  text.log_probabilities.push_back(log_probability);
  text.score += log_probability;
}

/// Repeats each prompt `times` times.
std::vector<TokenIds> repeated_prompts(const std::vector<TokenIds>& prompts, int64_t times) {
  std::vector<TokenIds> rows;
  for (const TokenIds& prompt : prompts) rows.insert(rows.end(), size_t(times), prompt);
  return rows;
}

}  // namespace

class Continuation::Search {
 public:
  virtual ~Search() = default;
  virtual bool complete() const = 0;
  virtual void step() = 0;
  virtual std::vector<GeneratedTokens> texts() const = 0;
  virtual StepRecords step_records() const = 0;
};

/// Texts with one row each, whose tokens are the most probable ones or drawn.
class Continuation::Sampling final : public Search {
 public:
  Sampling(const ModelHandle& model, const std::vector<TokenIds>& prompts,
           const GenerateOptions& options)
      : options_(options),
        decoder_(model, prompts, decoder_options(options)),
        texts_(prompts.size()) {}

  bool complete() const override {
    return std::all_of(texts_.begin(), texts_.end(),
                       [this](const GeneratedTokens& text) { return ended(text); });
  }
  void step() override {
    const at::Tensor logits = decoder_.next_logits();
    for (size_t i = 0; i < texts_.size(); ++i) {
      GeneratedTokens& text = texts_[i];
      if (ended(text)) continue;
      const auto number = static_cast<int64_t>(i);
      const std::span<const double> row = row_of(logits, number);
      const double sum = log_sum_exp(row);
      const std::vector<TokenChance> chances = token_chances(row, options_);
      const double draw =
          chances.size() == 1 ? 0 : token_draw(options_.seed, number, std::ssize(text.tokens));
      const int64_t token = drawn_token(chances, draw);
      add_token(text, token, row[size_t(token)] - sum);
      decoder_.append(number, token);
      if (options_.on_token) options_.on_token(number, token);
      text.stopped = ends_text(text.tokens, options_);
    }
  }
  std::vector<GeneratedTokens> texts() const override { return texts_; }
  StepRecords step_records() const override { return decoder_.records(); }

 private:
  bool ended(const GeneratedTokens& text) const {
    return text.stopped || std::ssize(text.tokens) >= options_.max_new_tokens;
  }

  GenerateOptions options_;
  TokenDecoder decoder_;
  std::vector<GeneratedTokens> texts_;
};

/// Beam search, as transformers does it: each step looks at the 2 · num_beams best continuations of
/// a text's beams. Those that end it, among the first num_beams, are finished; the others go on.
class Continuation::Beams final : public Search {
 public:
  Beams(const ModelHandle& model, const std::vector<TokenIds>& prompts,
        const GenerateOptions& options)
      : options_(options),
        decoder_(model, repeated_prompts(prompts, options.num_beams), decoder_options(options)),
        texts_(prompts.size()) {
    // All beams are the same prompt at first, so only one may go on.
    for (Text& text : texts_) text.beams.resize(1);
  }

  bool complete() const override {
    return std::all_of(texts_.begin(), texts_.end(), [](const Text& text) { return text.ended; });
  }
  void step() override {
    const at::Tensor logits = decoder_.next_logits();
    std::vector<int64_t> rows, tokens;
    for (size_t i = 0; i < texts_.size(); ++i) {
      extend(texts_[i], logits, static_cast<int64_t>(i) * options_.num_beams, rows, tokens);
    }
    decoder_.select_rows(rows);
    for (size_t row = 0; row < rows.size(); ++row) {
      if (tokens[row] >= 0) decoder_.append(static_cast<int64_t>(row), tokens[row]);
    }
  }
  std::vector<GeneratedTokens> texts() const override {
    std::vector<GeneratedTokens> best;
    for (const Text& text : texts_) best.push_back(best_of(text));
    return best;
  }
  StepRecords step_records() const override { return decoder_.records(); }

 private:
  struct Text {
    std::vector<GeneratedTokens> beams;     ///< those that go on; `score` is the sum
    std::vector<GeneratedTokens> finished;  ///< at most num_beams, best first; `score` is the score
    bool ended = false;
  };
  /// A continuation of a beam: the beam's number in its text, the next token, the sum with it.
  struct Candidate {
    int64_t beam = 0, token = 0;
    double log_probability = 0, sum = 0;
  };

  double score(double sum, int64_t tokens) const {
    return sum / std::pow(static_cast<double>(tokens), options_.length_penalty);
  }

  GeneratedTokens best_of(const Text& text) const {
    if (!text.finished.empty()) return text.finished.front();
    GeneratedTokens best = text.beams.front();
    if (!best.tokens.empty()) best.score = score(best.score, std::ssize(best.tokens));
    return best;
  }

  /// Returns the best continuations of a text's beams, at most 2 · num_beams, best first.
  std::vector<Candidate> candidates(const Text& text, const at::Tensor& logits,
                                    int64_t first_row) const {
    std::vector<Candidate> all;
    for (size_t beam = 0; beam < text.beams.size(); ++beam) {
      const auto number = static_cast<int64_t>(beam);
      const std::span<const double> row = row_of(logits, first_row + number);
      const double sum = log_sum_exp(row);
      for (const int64_t token : best_tokens(row, 2 * options_.num_beams)) {
        const double log_probability = row[size_t(token)] - sum;
        all.push_back({number, token, log_probability, text.beams[beam].score + log_probability});
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.sum > b.sum; });
    if (std::ssize(all) > 2 * options_.num_beams) all.resize(size_t(2 * options_.num_beams));
    return all;
  }

  /// Adds a text that has ended to the best ones.
  void finish(Text& text, GeneratedTokens done) const {
    done.score = score(done.score, std::ssize(done.tokens));
    const auto place =
        std::find_if(text.finished.begin(), text.finished.end(),
                     [&](const GeneratedTokens& other) { return other.score < done.score; });
    text.finished.insert(place, std::move(done));
    if (std::ssize(text.finished) > options_.num_beams) text.finished.pop_back();
  }

  /// Whether no beam that goes on may beat the worst finished text. Like transformers, it compares
  /// with the best beam's score at its present length.
  bool is_settled(const Text& text) const {
    if (std::ssize(text.finished) < options_.num_beams) return false;
    if (options_.early_stopping || text.beams.empty()) return true;
    const GeneratedTokens& best = text.beams.front();
    return text.finished.back().score >= score(best.score, std::ssize(best.tokens));
  }

  /// Extends the beams of a text, whose rows are from `first_row` on. Appends, for each row, the
  /// row that it continues and its token, -1 for a row that does not go on.
  void extend(Text& text, const at::Tensor& logits, int64_t first_row, std::vector<int64_t>& rows,
              std::vector<int64_t>& tokens) const {
    std::vector<GeneratedTokens> next;
    std::vector<int64_t> from, added;
    if (!text.ended) {
      const std::vector<Candidate> all = candidates(text, logits, first_row);
      for (size_t rank = 0; rank < all.size() && std::ssize(next) < options_.num_beams; ++rank) {
        GeneratedTokens beam = text.beams[size_t(all[rank].beam)];
        add_token(beam, all[rank].token, all[rank].log_probability);
        if (ends_text(beam.tokens, options_)) {
          beam.stopped = true;
          if (static_cast<int64_t>(rank) < options_.num_beams) finish(text, std::move(beam));
          continue;
        }
        next.push_back(std::move(beam));
        from.push_back(first_row + all[rank].beam);
        added.push_back(all[rank].token);
      }
      const auto length = std::ssize(text.beams.front().tokens) + 1;
      text.beams = std::move(next);
      if (length >= options_.max_new_tokens) {
        for (GeneratedTokens& beam : text.beams) finish(text, std::move(beam));
        text.beams.clear();
      }
      text.ended = text.beams.empty() || is_settled(text);
    }
    for (int64_t beam = std::ssize(from); beam < options_.num_beams; ++beam) {
      from.push_back(first_row + beam);
      added.push_back(-1);
    }
    rows.insert(rows.end(), from.begin(), from.end());
    tokens.insert(tokens.end(), added.begin(), added.end());
  }

  GenerateOptions options_;
  TokenDecoder decoder_;
  std::vector<Text> texts_;
};

Continuation::Continuation(const ModelHandle& model, const std::vector<TokenIds>& prompts,
                           const GenerateOptions& options) {
  check_options(options);
  if (!options.stop_words.empty()) {
    throw ConfigError("generate", "stop_words are found in texts, which need a Tokenizer",
                      "token ids", "pass a tokenizer, or use stop_tokens or `stop`");
  }
  if (options.num_beams > 1) {
    search_ = std::make_unique<Beams>(model, prompts, options);
  } else {
    search_ = std::make_unique<Sampling>(model, prompts, options);
  }
  if (options.check_model) check_continues(model, prompts[0][0]);
}

Continuation::Continuation(Continuation&&) noexcept = default;
Continuation& Continuation::operator=(Continuation&&) noexcept = default;
Continuation::~Continuation() = default;

bool Continuation::complete() const { return search_->complete(); }

void Continuation::step() {
  if (complete()) {
    throw StateError("Continuation", "a text has not ended", "all texts are complete",
                     "ask complete() before step()");
  }
  search_->step();
}

std::vector<GeneratedTokens> Continuation::texts() const { return search_->texts(); }

StepRecords Continuation::step_records() const { return search_->step_records(); }

std::vector<GeneratedTokens> generate(const ModelHandle& model,
                                      const std::vector<TokenIds>& prompts,
                                      const GenerateOptions& options) {
  Continuation texts(model, prompts, options);
  while (!texts.complete()) texts.step();
  return texts.texts();
}

namespace {

std::string decoded(const Tokenizer& tokenizer, std::span<const int64_t> tokens) {
  return tokenizer.decode(std::vector<int32_t>(tokens.begin(), tokens.end()));
}

/// Returns where the first of `words` begins in a text; npos if none does.
size_t find_any(const std::string& text, const std::vector<std::string>& words, size_t from) {
  size_t first = std::string::npos;
  for (const std::string& word : words) first = std::min(first, text.find(word, from));
  return first;
}

}  // namespace

std::vector<std::string> generate(const ModelHandle& model, const Tokenizer& tokenizer,
                                  const std::vector<std::string>& prompts,
                                  const GenerateOptions& options) {
  GenerateOptions tokens = options;
  tokens.stop_words.clear();
  for (const std::string& word : options.stop_words) {
    if (!word.empty()) continue;
    throw ConfigError("generate", "a stop word has at least one character", "\"\"", "leave it out");
  }
  if (!options.stop_words.empty()) {
    tokens.stop = [&](std::span<const int64_t> added) {
      if (options.stop && options.stop(added)) return true;
      return find_any(decoded(tokenizer, added), options.stop_words, 0) != std::string::npos;
    };
  }
  std::vector<TokenIds> ids;
  for (const std::string& prompt : prompts) {
    std::vector<int32_t> encoded;
    tokenizer.encode_ids(prompt, encoded);
    ids.emplace_back(encoded.begin(), encoded.end());
  }
  const std::vector<GeneratedTokens> added = generate(model, ids, tokens);
  std::vector<std::string> texts;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const std::string prompt = decoded(tokenizer, ids[i]);
    ids[i].insert(ids[i].end(), added[i].tokens.begin(), added[i].tokens.end());
    const std::string text = decoded(tokenizer, ids[i]);
    // A stop word is looked for in what was added: decoded alone, a word may lack its blank.
    const size_t from = text.starts_with(prompt) ? prompt.size() : 0;
    texts.push_back(text.substr(0, find_any(text, options.stop_words, from)));
  }
  return texts;
}

std::string generate(const ModelHandle& model, const Tokenizer& tokenizer,
                     const std::string& prompt, const GenerateOptions& options) {
  return generate(model, tokenizer, std::vector<std::string>{prompt}, options)[0];
}

}  // namespace tessera
