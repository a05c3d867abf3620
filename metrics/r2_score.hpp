#pragma once

#include <array>
#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// How the scores of several outputs are combined: not at all, by their mean, or by their mean
/// weighted by the variance of each output's labels.
enum class ClassAggregation : uint8_t { none, uniform_average, variance_weighted_average };
/// Returns Keras' names of the aggregations, in the order of the enumerators; "none" is its None.
inline std::array<const char*, 3> names_of(ClassAggregation) {
  return {"none", "uniform_average", "variance_weighted_average"};
}

/// The options of R2Score.
struct R2ScoreOptions {
  /// Combination of the outputs' scores.
  ClassAggregation class_aggregation = ClassAggregation::uniform_average;
  /// Number of independent variables, for the adjusted score. The score is not adjusted if it is 0
  /// (default) or at least the number of labels minus 1.
  int64_t num_regressors = 0;
  std::string name = "r2_score";  ///< name in logs
};

/// 1 - sum of squared errors / sum of squared deviations of the labels from their mean
/// (keras.metrics.R2Score); 0 for an output with constant labels and wrong predictions. Without
/// aggregation, result_values() has the score of each output, and result() is their mean.
///
/// Shape: labels and predictions (batch, outputs) -> a number, or one for each output.
/// Communication: none until the result is read. Throws ConfigError for a negative num_regressors,
/// ShapeError for other shapes.
class R2Score : public MetricHandle {
 public:
  explicit R2Score(R2ScoreOptions options = {});
};

}  // namespace tessera
