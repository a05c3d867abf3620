#pragma once

#include <array>
#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// How the scores of outputs become one: not at all, their mean, or their mean weighted by the
/// variance of each output's labels.
enum class ClassAggregation : uint8_t { none, uniform_average, variance_weighted_average };
/// Keras' names of the aggregations, in the order of the enumerators; "none" is its None.
inline std::array<const char*, 3> names_of(ClassAggregation) {
  return {"none", "uniform_average", "variance_weighted_average"};
}

/// The options of R2Score.
struct R2ScoreOptions {
  /// How the scores of outputs become one number.
  ClassAggregation class_aggregation = ClassAggregation::uniform_average;
  /// Variables that predictions are made of, for the adjusted score; 0: the plain one, as also
  /// where there are no more labels than these and one.
  int64_t num_regressors = 0;
  std::string name = "r2_score";  ///< what logs call the metric
};

/// 1 - sum of squared errors / sum of squared deviations of the labels from their mean
/// (keras.metrics.R2Score); 0 for an output whose labels do not differ and are not met. Without
/// aggregation result_values() has the score of each output, and result() is their mean.
///
/// Shape: labels and predictions (batch, outputs) -> a number, or one for each output.
/// Communication: none until it is read. Throws ConfigError for a negative num_regressors,
/// ShapeError for other shapes.
class R2Score : public MetricHandle {
 public:
  explicit R2Score(R2ScoreOptions options = {});
};

}  // namespace tessera
