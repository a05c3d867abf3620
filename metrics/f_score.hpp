#pragma once

#include <array>
#include <optional>
#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// How the scores of several classes are combined: by summing the counts of all classes (micro), by
/// their mean (macro), or by their mean weighted by the number of labels of each class (weighted).
enum class ScoreAverage : uint8_t { micro, macro, weighted };
/// Returns Keras' names of the averages, in the order of the enumerators.
inline std::array<const char*, 3> names_of(ScoreAverage) { return {"micro", "macro", "weighted"}; }

/// The options of FBetaScore.
struct FBetaScoreOptions {
  std::optional<ScoreAverage> average =
      std::nullopt;  ///< combination of the scores (default: none)
  double beta = 1;   ///< weight of recall relative to precision; positive
  /// Predictions above it are positive; in (0, 1] (default: the largest of each sample is
  /// positive).
  std::optional<double> threshold = std::nullopt;
  std::string name = "fbeta_score";  ///< name in logs
};

/// (1 + beta²) precision · recall / (beta² precision + recall) (keras.metrics.FBetaScore). Without
/// `average`, result_values() has the score of each class, and result() is their mean.
///
/// Shape: labels and predictions (batch, classes) -> a number, or one for each class.
/// Communication: none until the result is read, unless the class axis is sharded and there is no
/// threshold. Throws ConfigError unless beta > 0 and 0 < threshold <= 1, ShapeError for other
/// shapes.
class FBetaScore : public MetricHandle {
 public:
  explicit FBetaScore(FBetaScoreOptions options = {});
};

/// The options of F1Score.
struct F1ScoreOptions {
  std::optional<ScoreAverage> average =
      std::nullopt;  ///< combination of the scores (default: none)
  /// Predictions above it are positive; in (0, 1] (default: the largest of each sample is
  /// positive).
  std::optional<double> threshold = std::nullopt;
  std::string name = "f1_score";  ///< name in logs
};

/// 2 precision · recall / (precision + recall), the FBetaScore of beta 1 (keras.metrics.F1Score).
/// Without `average`, result_values() has the score of each class, and result() is their mean.
///
/// Shape: labels and predictions (batch, classes) -> a number, or one for each class.
/// Communication: none until the result is read, unless the class axis is sharded and there is no
/// threshold. Throws ConfigError unless 0 < threshold <= 1, ShapeError for other shapes.
class F1Score : public MetricHandle {
 public:
  explicit F1Score(F1ScoreOptions options = {});
};

}  // namespace tessera
