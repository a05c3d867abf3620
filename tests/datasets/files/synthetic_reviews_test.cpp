#include <tessera/datasets/files/synthetic_reviews.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

#include "tests/support/catch.hpp"

namespace synthetic_reviews_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Calls visit(word) for the words between spaces.
template <class Visit>
void for_each_word(std::string_view text, const Visit& visit) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(" .,<>/", begin), text.size());
    if (end > begin) visit(std::string(text.substr(begin, end - begin)));
    begin = end + 1;
  }
}

/// A perceptron on the set of words that occur.
class Perceptron {
 public:
  double score(std::string_view text) {
    double sum = bias_;
    for_each_word(text, [&](const std::string& word) { sum += weights_[word]; });
    return sum;
  }
  void learn(std::string_view text, uint8_t label) {
    const double sign = label == 1 ? 1 : -1;
    if (score(text) * sign > 0) return;
    bias_ += sign;
    for_each_word(text, [&](const std::string& word) { weights_[word] += sign; });
  }

 private:
  std::unordered_map<std::string, double> weights_;
  double bias_ = 0;
};

}  // namespace

TEST_CASE("synthetic reviews depend only on the seed and their index") {
  const LabelledTexts all = synthetic_reviews(20, {1, 2});
  CHECK(all.size() == 20);
  const LabelledTexts tail = synthetic_reviews(5, {1, 2}, 15);
  for (int64_t i = 0; i < 5; ++i) {
    CHECK(tail.text(i) == all.text(15 + i));
    CHECK(tail.labels[static_cast<size_t>(i)] == all.labels[static_cast<size_t>(15 + i)]);
  }
  CHECK(synthetic_reviews(20, {1, 3}).bytes != all.bytes);
  CHECK(synthetic_reviews(0, {1, 2}).size() == 0);
  CHECK_THROWS_AS(synthetic_reviews(-1, {}), ConfigError);
  CHECK_THROWS_AS(synthetic_reviews(1, {}, -1), ConfigError);
}

TEST_CASE("synthetic reviews have the sizes and punctuation of real ones") {
  const LabelledTexts reviews = synthetic_reviews(2000, {7, 0});
  const auto positive = std::count(reviews.labels.begin(), reviews.labels.end(), 1);
  CHECK(std::abs(positive - 1000) < 100);
  CHECK(reviews.bytes.size() / 2000 > 1000);
  CHECK(reviews.bytes.size() / 2000 < 1700);
  for (int64_t i = 0; i < reviews.size(); ++i) {
    CHECK(reviews.text(i).size() > 30);
    CHECK(reviews.text(i).size() < 20000);
    CHECK(reviews.text(i).ends_with('.'));
  }
  for (const char* part : {"<br /><br />", ", ", "caf\xc3\xa9", "great", "awful"}) {
    CHECK(reviews.bytes.find(part) != std::string::npos);
  }
  std::string_view rest = reviews.bytes;
  while (const size_t length = utf8_length(rest)) rest.remove_prefix(length);
  CHECK(rest.empty());
  std::unordered_map<std::string, int> words;
  for_each_word(reviews.bytes, [&](const std::string& word) { ++words[word]; });
  CHECK(words.size() > 5000);
}

TEST_CASE("synthetic reviews can be learned") {
  const LabelledTexts train = synthetic_reviews(3000, {1, 0});
  const LabelledTexts test = synthetic_reviews(1000, {1, 0}, 3000);
  Perceptron model;
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (int64_t i = 0; i < train.size(); ++i) {
      model.learn(train.text(i), train.labels[static_cast<size_t>(i)]);
    }
  }
  int right = 0;
  for (int64_t i = 0; i < test.size(); ++i) {
    right += (model.score(test.text(i)) > 0) == (test.labels[static_cast<size_t>(i)] == 1);
  }
  CAPTURE(right);
  CHECK(right > 800);
}

}  // namespace synthetic_reviews_test
