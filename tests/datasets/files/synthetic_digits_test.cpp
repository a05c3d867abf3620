#include <tessera/datasets/files/synthetic_digits.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace synthetic_digits_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

constexpr size_t pixels = 784;

/// Softmax regression, trained by one SGD pass per epoch.
class LinearClassifier {
 public:
  size_t predict(const uint8_t* image) {
    for (size_t k = 0; k < 10; ++k) {
      scores_[k] = bias_[k];
      for (size_t i = 0; i < pixels; ++i) scores_[k] += image[i] / 255.0f * weights_[k][i];
    }
    return static_cast<size_t>(std::max_element(scores_.begin(), scores_.end()) - scores_.begin());
  }

  void learn(const uint8_t* image, uint8_t label) {
    predict(image);
    const float most = *std::max_element(scores_.begin(), scores_.end());
    for (float& score : scores_) score = std::exp(score - most);
    const float sum = std::accumulate(scores_.begin(), scores_.end(), 0.0f);
    for (size_t k = 0; k < 10; ++k) {
      const float step = 0.02f * (scores_[k] / sum - (k == label ? 1.0f : 0.0f));
      bias_[k] -= step;
      for (size_t i = 0; i < pixels; ++i) weights_[k][i] -= step * image[i] / 255.0f;
    }
  }

 private:
  std::array<std::array<float, pixels>, 10> weights_{};
  std::array<float, 10> bias_{};
  std::array<float, 10> scores_{};
};

}  // namespace

TEST_CASE("synthetic digits depend only on the seed and their index") {
  const LabelledImages all = synthetic_digits(20, {1, 2});
  CHECK(all.images.shape == Shape{20, 28, 28});
  CHECK(all.labels.shape == Shape{20});
  const LabelledImages tail = synthetic_digits(5, {1, 2}, 15);
  CHECK(std::equal(tail.images.data.begin(), tail.images.data.end(),
                   all.images.data.begin() + 15 * pixels));
  CHECK(std::equal(tail.labels.data.begin(), tail.labels.data.end(), all.labels.data.begin() + 15));
  CHECK(synthetic_digits(20, {1, 3}).images.data != all.images.data);
  CHECK(synthetic_digits(0, {1, 2}).images.data.empty());
  CHECK_THROWS_AS(synthetic_digits(-1, {}), ConfigError);
}

TEST_CASE("synthetic digits are balanced and look like ink on paper") {
  const LabelledImages digits = synthetic_digits(2000, {7, 0});
  std::array<int, 10> counts{};
  for (uint8_t label : digits.labels.data) ++counts.at(label);
  for (int count : counts) CHECK(std::abs(count - 200) < 70);
  for (size_t i = 0; i < 2000; ++i) {
    const auto begin = digits.images.data.begin() + static_cast<ptrdiff_t>(i * pixels);
    const auto ink = std::count_if(begin, begin + pixels, [](uint8_t v) { return v > 128; });
    CHECK(ink > 15);
    CHECK(ink < 350);
    CHECK(*std::max_element(begin, begin + pixels) > 150);
  }
}

TEST_CASE("synthetic digits can be learned") {
  const LabelledImages train = synthetic_digits(3000, {1, 0});
  const LabelledImages test = synthetic_digits(1000, {1, 0}, 3000);
  LinearClassifier model;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (size_t i = 0; i < 3000; ++i) {
      model.learn(&train.images.data[i * pixels], train.labels.data[i]);
    }
  }
  int right = 0;
  for (size_t i = 0; i < 1000; ++i) {
    right += model.predict(&test.images.data[i * pixels]) == test.labels.data[i];
  }
  CHECK(right > 850);
}

}  // namespace synthetic_digits_test
