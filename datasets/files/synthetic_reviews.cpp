#include <tessera/datasets/files/synthetic_reviews.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::array<std::string_view, 30> praise{
    "great",      "excellent", "wonderful", "best",        "love",      "brilliant",
    "beautiful",  "perfect",   "superb",    "touching",    "favorite",  "amazing",
    "enjoyed",    "moving",    "fantastic", "memorable",   "charming",  "powerful",
    "delightful", "terrific",  "hilarious", "masterpiece", "gripping",  "funny",
    "fresh",      "honest",    "clever",    "tender",      "rewarding", "stunning"};

constexpr std::array<std::string_view, 30> blame{
    "bad",       "worst",      "awful",         "boring", "terrible",    "waste",
    "poor",      "stupid",     "horrible",      "dull",   "worse",       "lame",
    "annoying",  "ridiculous", "pathetic",      "cheap",  "predictable", "mess",
    "laughable", "pointless",  "disappointing", "flat",   "clumsy",      "unfunny",
    "wooden",    "tedious",    "forgettable",   "silly",  "lifeless",    "dreadful"};

/// Common words in order of frequency, as Zipf's law needs them.
constexpr std::array<std::string_view, 96> common{
    "the",   "and",    "a",    "of",    "to",     "is",     "in",    "it",     "i",       "this",
    "that",  "was",    "as",   "with",  "for",    "movie",  "but",   "film",   "on",      "not",
    "you",   "his",    "are",  "have",  "be",     "he",     "one",   "its",    "at",      "all",
    "by",    "an",     "they", "from",  "who",    "so",     "like",  "her",    "just",    "or",
    "about", "out",    "has",  "if",    "some",   "there",  "what",  "more",   "when",    "very",
    "she",   "even",   "my",   "no",    "up",     "would",  "which", "only",   "time",    "really",
    "story", "their",  "had",  "see",   "can",    "were",   "me",    "well",   "than",    "we",
    "much",  "been",   "into", "get",   "will",   "other",  "also",  "people", "because", "how",
    "first", "most",   "made", "then",  "them",   "movies", "way",   "make",   "could",   "any",
    "after", "acting", "café", "naïve", "Amélie", "cliché"};

constexpr std::array<std::string_view, 24> syllables{
    "ra",  "ton", "mi",  "vel", "dor", "sa",  "lin", "ko", "per", "na", "gus", "te",
    "ban", "ru",  "shi", "mar", "el",  "cor", "du",  "fi", "wen", "za", "hol", "y"};

constexpr float opinion_share = 0.06f;
constexpr float rare_share = 0.12f;
constexpr float agreement = 0.68f;
constexpr float rare_words = 60000;
constexpr float line_break_share = 0.06f;
constexpr double mean_log_words = 5.43;
constexpr double deviation_log_words = 0.6;
constexpr int64_t min_words = 10;
constexpr int64_t max_words = 2400;

/// Uniform random numbers in [0, 1), generated all at once.
class ReviewDraws {
 public:
  ReviewDraws(Seed seed, int64_t count) : values_(static_cast<size_t>(count)) {
    const Interval full{0, count};
    stateless_uniform(seed, {count}, std::span(&full, 1), 0.0f, 1.0f, values_.data());
  }
  float next() { return values_[at_++]; }

 private:
  std::vector<float> values_;
  size_t at_ = 0;
};

/// Draws the index of one of `n` words by Zipf's law: the probability of index k is about
/// proportional to 1 / (k + 1).
size_t zipf(float draw, float n) {
  return static_cast<size_t>(std::min(std::pow(n + 1, draw) - 1, n - 1));
}

void add_rare_word(float draw, std::string& out) {
  size_t number = zipf(draw, rare_words) + syllables.size();
  for (; number > 0; number /= syllables.size()) out += syllables[number % syllables.size()];
}

/// Appends one word; consumes three numbers.
void add_word(uint8_t label, ReviewDraws& draws, std::string& out) {
  const float kind = draws.next();
  const float side = draws.next();
  const float which = draws.next();
  if (kind < opinion_share) {
    const bool positive = (side < agreement) == (label == 1);
    const Words words = positive ? Words(praise) : Words(blame);
    out += words[zipf(which, static_cast<float>(words.size()))];
  } else if (kind < opinion_share + rare_share) {
    add_rare_word(which, out);
  } else {
    out += common[zipf(which, static_cast<float>(common.size()))];
  }
}

int64_t word_count(Seed seed) {
  constexpr Interval full{0, 1};
  float normal = 0;
  stateless_normal(seed, {1}, std::span(&full, 1), 0.0f, 1.0f, &normal);
  const double words = std::exp(mean_log_words + deviation_log_words * double{normal});
  return std::clamp(static_cast<int64_t>(words), min_words, max_words);
}

std::string write_review(Seed seed, uint8_t label) {
  constexpr float sentence_words = 18;
  constexpr float comma_share = 0.06f;
  const int64_t words = word_count(fold_in(seed, 1));
  ReviewDraws draws(seed, 5 * words);
  std::string text;
  bool begins = true;
  for (int64_t i = 0; i < words; ++i) {
    const size_t start = text.size();
    add_word(label, draws, text);
    char& letter = text[start];
    if (begins && letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
    const float mark = draws.next();
    begins = i + 1 == words || mark * sentence_words < 1;
    text += begins ? "." : mark > 1 - comma_share ? "," : "";
    const bool line_break = begins && draws.next() < line_break_share;
    if (i + 1 < words) text += line_break ? "<br /><br />" : " ";
  }
  return text;
}

}  // namespace

LabelledTexts synthetic_reviews(int64_t n, Seed seed, int64_t first) {
  if (n < 0 || first < 0) {
    throw ConfigError("synthetic reviews", "the number of reviews must not be negative",
                      str(n, " reviews from number ", first), "pass non-negative numbers");
  }
  LabelledTexts reviews;
  for (int64_t i = first; i < first + n; ++i) {
    const Seed own = fold_in(seed, static_cast<uint64_t>(i));
    const auto label = static_cast<uint8_t>(own.a & 1);
    reviews.add(write_review(own, label), label);
  }
  return reviews;
}

}  // namespace tessera::detail
