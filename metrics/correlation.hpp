#pragma once

#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// The options of PearsonCorrelation.
struct PearsonCorrelationOptions {
  std::string name = "pearson_correlation";  ///< what logs call the metric
  int64_t axis = -1;                         ///< axis along which labels and predictions correlate
};

/// Mean over samples of the correlation of labels and predictions along an axis, their covariance
/// divided by both standard deviations; no number where one of these is 0
/// (keras.metrics.PearsonCorrelation).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: none until it is read if the axis is whole; a cut one is reduced in every update.
/// Throws ShapeError for two shapes.
class PearsonCorrelation : public MetricHandle {
 public:
  explicit PearsonCorrelation(PearsonCorrelationOptions options = {});
};

/// The options of ConcordanceCorrelation.
struct ConcordanceCorrelationOptions {
  std::string name = "concordance_correlation";  ///< what logs call the metric
  int64_t axis = -1;  ///< axis along which labels and predictions correlate
};

/// Mean over samples of 2 · covariance / (variances + (t - p)²) along an axis, with t and p the
/// means of labels and predictions (keras.metrics.ConcordanceCorrelation; Lin, 1989).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: none until it is read if the axis is whole; a cut one is reduced in every update.
/// Throws ShapeError for two shapes.
class ConcordanceCorrelation : public MetricHandle {
 public:
  explicit ConcordanceCorrelation(ConcordanceCorrelationOptions options = {});
};

}  // namespace tessera
