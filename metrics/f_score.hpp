#pragma once

#include <array>
#include <optional>
#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// How the scores of classes become one: of the counts of all classes together, their mean, or
/// their mean weighted by the labels of each class.
enum class ScoreAverage : uint8_t { micro, macro, weighted };
/// Keras' names, in the order of the enumerators.
inline std::array<const char*, 3> names_of(ScoreAverage) { return {"micro", "macro", "weighted"}; }

struct FBetaScoreOptions {
  std::optional<ScoreAverage> average = std::nullopt;
  double beta = 1;
  std::optional<double> threshold = std::nullopt;
  std::string name = "fbeta_score";
};
template <class Visit>
void fields(FBetaScoreOptions& o, Visit visit) {
  visit("average", o.average);
  visit("beta", o.beta);
  visit("threshold", o.threshold);
  visit("name", o.name);
}

/// (1 + beta²) precision · recall / (beta² precision + recall) of labels and predictions
/// (batch, classes) (keras.metrics.FBetaScore). Positive are the predictions above the threshold,
/// without one the largest of each sample. Without `average` result_values() has the score of each
/// class, and result() is their mean. Throws ConfigError unless beta > 0 and 0 < threshold <= 1.
class FBetaScore : public MetricHandle {
 public:
  explicit FBetaScore(FBetaScoreOptions options = {});
};

struct F1ScoreOptions {
  std::optional<ScoreAverage> average = std::nullopt;
  std::optional<double> threshold = std::nullopt;
  std::string name = "f1_score";
};
template <class Visit>
void fields(F1ScoreOptions& o, Visit visit) {
  visit("average", o.average);
  visit("threshold", o.threshold);
  visit("name", o.name);
}

/// FBetaScore of beta 1 (keras.metrics.F1Score).
class F1Score : public MetricHandle {
 public:
  explicit F1Score(F1ScoreOptions options = {});
};

}  // namespace tessera
